//! `// run: kernel(arguments) = results` rows inside a PTX file. Tests of other crates include this file, so it uses nothing
//! of this one.
//!
//! A kernel's first parameter is a pointer to its results; a row's arguments fill the others in order.
//!
//! ```text
//! // run: shl_b32(1, 31) = 0x80000000
//! // run: add_f32(1.5, inf) = inf            floats; a 4-byte parameter takes f32, an 8-byte one f64
//! // run: mul_wide(-1, 2) = -2s64            result sizes: u8 u16 u32 u64 (s likewise), f32 f64; default u32 or f32
//! // run: ex2(3.0) = 8.0~2                   within 2 ulp
//! // run: any_nan(nan) = nan                 any NaN; write bits (0x7fffffff) to ask for one
//! // run[block=64, grid=2, shared=1024]: ballot() = 0xffffffff*128
//! // run[lane]: lock() = 1                      not asked of settings `warp` and `simd`
//! // run[warp]: named_barrier() = 1             `warp` has to take it; not asked of setting `simd`
//! // run[warp, grid=4, cluster=2]: rank() = 0, 1, 0, 1
//! // run[warp, grid=4, cooperative]: meet() = 4
//! ```
//! A `*n` repeats a value. Text behind two spaces after the results is a remark.

/// How a row is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Blocks of a cluster.
    pub cluster: [u32; 3],
    pub cooperative: bool,
    pub dynamic_shared: u32,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { grid: [1; 3], block: [1; 3], cluster: [1; 3], cooperative: false, dynamic_shared: 0 }
    }
}

#[derive(Clone, Debug)]
pub struct Row {
    pub line: usize,
    pub kernel: String,
    pub arguments: Vec<String>,
    pub results: Vec<Expected>,
    pub how: Shape,
    /// Neither `warp` nor `simd` is asked for.
    pub lane_only: bool,
    /// `warp` has to take it, and `simd` is not asked for.
    pub warp_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    Int { bytes: usize, bits: u64 },
    F32 { value: f32, ulp: u32 },
    F64 { value: f64, ulp: u32 },
}

impl Expected {
    pub fn bytes(self) -> usize {
        match self {
            Expected::Int { bytes, .. } => bytes,
            Expected::F32 { .. } => 4,
            Expected::F64 { .. } => 8,
        }
    }

    /// Whether these bytes are the expected ones.
    pub fn matches(self, got: &[u8]) -> bool {
        let mut raw = [0; 8];
        raw[..got.len()].copy_from_slice(got);
        let bits = u64::from_le_bytes(raw);
        match self {
            Expected::Int { bits: wanted, .. } => bits == wanted,
            Expected::F32 { value, ulp } => {
                let got = f32::from_bits(bits as u32);
                let ordered = |v: f32| {
                    i64::from(v.to_bits() as i32 & 0x7fff_ffff) * if v.is_sign_negative() { -1 } else { 1 }
                };
                if value.is_nan() || got.is_nan() || ulp == 0 {
                    return value.is_nan() && got.is_nan() || value.to_bits() == got.to_bits();
                }
                ordered(value).abs_diff(ordered(got)) <= u64::from(ulp)
            }
            Expected::F64 { value, ulp } => {
                let got = f64::from_bits(bits);
                let ordered = |v: f64| {
                    i128::from(v.to_bits() as i64 & i64::MAX) * if v.is_sign_negative() { -1 } else { 1 }
                };
                if value.is_nan() || got.is_nan() || ulp == 0 {
                    return value.is_nan() && got.is_nan() || value.to_bits() == got.to_bits();
                }
                ordered(value).abs_diff(ordered(got)) <= u128::from(ulp)
            }
        }
    }

    pub fn show(self, got: &[u8]) -> String {
        let mut raw = [0; 8];
        raw[..got.len()].copy_from_slice(got);
        let bits = u64::from_le_bytes(raw);
        match self {
            Expected::Int { .. } => format!("{bits:#x}"),
            Expected::F32 { .. } => format!("{:?} ({bits:#010x})", f32::from_bits(bits as u32)),
            Expected::F64 { .. } => format!("{:?} ({bits:#018x})", f64::from_bits(bits)),
        }
    }
}

/// Every row of a PTX text.
pub fn parse(text: &str) -> Result<Vec<Row>, String> {
    let mut rows = vec![];
    for (i, line) in text.lines().enumerate() {
        let Some(rest) = line.trim_start().strip_prefix("// run") else { continue };
        let row = row(i + 1, rest).ok_or_else(|| format!("line {}: not a row: {line}", i + 1))?;
        rows.push(row);
    }
    Ok(rows)
}

fn row(line: usize, rest: &str) -> Option<Row> {
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once("]:")?,
        None => ("", rest.strip_prefix(':')?),
    };
    let (call, results) = rest.split_once(") =")?;
    let (kernel, arguments) = call.split_once('(')?;
    let results = results.trim_start();
    let results = results.split_once("  ").map_or(results, |(results, _)| results);
    let list = |text: &str| -> Vec<String> {
        text.split(',').map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()).collect()
    };
    let mut how = Shape::default();
    let (mut lane_only, mut warp_only) = (false, false);
    for option in list(options) {
        match option.split_once('=') {
            None if option == "lane" => lane_only = true,
            None if option == "warp" => warp_only = true,
            Some(("block", v)) => how.block = dims(v)?,
            Some(("grid", v)) => how.grid = dims(v)?,
            Some(("cluster", v)) => how.cluster = dims(v)?,
            None if option == "cooperative" => how.cooperative = true,
            Some(("shared", v)) => how.dynamic_shared = v.trim().parse().ok()?,
            _ => return None,
        }
    }
    let mut expected = vec![];
    for result in list(results) {
        let (value, n) = match result.rsplit_once('*') {
            Some((value, n)) => (value, n.parse().ok()?),
            None => (result.as_str(), 1),
        };
        let value = self::expected(value)?;
        expected.extend(std::iter::repeat_n(value, n));
    }
    Some(Row {
        line,
        kernel: kernel.trim().to_owned(),
        arguments: list(arguments),
        results: expected,
        how,
        lane_only,
        warp_only,
    })
}

/// `64` or `8x4x2`.
fn dims(text: &str) -> Option<[u32; 3]> {
    let mut dims = [1; 3];
    for (i, part) in text.split('x').enumerate() {
        *dims.get_mut(i)? = part.trim().parse().ok()?;
    }
    Some(dims)
}

fn expected(text: &str) -> Option<Expected> {
    let (text, ulp) = match text.split_once('~') {
        Some((text, ulp)) => (text, ulp.parse().ok()?),
        None => (text, 0),
    };
    let hex = text.starts_with("0x");
    for (suffix, bytes) in
        [("u8", 1), ("s8", 1), ("u16", 2), ("s16", 2), ("u32", 4), ("s32", 4), ("u64", 8), ("s64", 8)]
    {
        if let Some(digits) = text.strip_suffix(suffix) {
            return Some(Expected::Int { bytes, bits: truncated(int(digits)?, bytes) });
        }
    }
    // In hexadecimal f32 would be digits.
    if !hex && let Some(digits) = text.strip_suffix("f64") {
        return Some(Expected::F64 { value: float(digits)?, ulp });
    }
    if !hex && let Some(digits) = text.strip_suffix("f32") {
        return Some(Expected::F32 { value: float32(digits)?, ulp });
    }
    match int(text) {
        Some(value) => Some(Expected::Int { bytes: 4, bits: truncated(value, 4) }),
        None => Some(Expected::F32 { value: float32(text)?, ulp }),
    }
}

fn truncated(value: i128, bytes: usize) -> u64 {
    (value as u64) & (u64::MAX >> (64 - 8 * bytes))
}

fn int(text: &str) -> Option<i128> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}

fn float(text: &str) -> Option<f64> {
    text.parse().ok()
}

fn float32(text: &str) -> Option<f32> {
    text.parse().ok()
}

/// An argument as the parameter's bytes.
pub fn argument(text: &str, bytes: usize) -> Option<Vec<u8>> {
    if let Some(value) = int(text) {
        return Some(value.to_le_bytes()[..bytes].to_vec());
    }
    match bytes {
        4 => Some(float32(text)?.to_le_bytes().to_vec()),
        8 => Some(float(text)?.to_le_bytes().to_vec()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_reads_as_its_comment_says() {
        let rows = parse("// run: shl_b32(1, -2) = 0x80000000  clamped\n  // run[block=8x4, shared=64]: f(1.5) = 2.0~2, -1s64*2\n").unwrap();
        assert_eq!(rows[0].arguments, ["1", "-2"]);
        assert_eq!(rows[0].results, [Expected::Int { bytes: 4, bits: 0x8000_0000 }]);
        assert_eq!(rows[1].how.block, [8, 4, 1]);
        assert_eq!(rows[1].how.dynamic_shared, 64);
        let minus_one = Expected::Int { bytes: 8, bits: u64::MAX };
        assert_eq!(rows[1].results, [Expected::F32 { value: 2.0, ulp: 2 }, minus_one, minus_one]);
    }

    #[test]
    fn a_row_with_a_mistake_is_an_error_with_its_line() {
        assert!(parse("\n// run: f(1) 2\n").unwrap_err().starts_with("line 2"));
    }

    #[test]
    fn ulps_are_counted_across_neighbours_and_nan_equals_nan_only() {
        let near = Expected::F32 { value: 1.0, ulp: 1 };
        assert!(near.matches(&(1.0 + f32::EPSILON).to_le_bytes()));
        assert!(!near.matches(&(1.0 + 2.0 * f32::EPSILON).to_le_bytes()));
        let nan = Expected::F32 { value: f32::NAN, ulp: 0 };
        assert!(nan.matches(&f32::from_bits(0x7fff_ffff).to_le_bytes()));
        assert!(!nan.matches(&0f32.to_le_bytes()));
    }
}
