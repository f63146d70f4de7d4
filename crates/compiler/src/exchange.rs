//! What the lanes of a warp do together on registers that they bring to each other, as functions that baseline code calls and
//! does not bring along: each is made once for all kernels. Its name says all of what it does.

use crate::back::llvm::inst::matrix::{self, rows, warpgroup};
use crate::back::llvm::{Builder, Unsupported};
use crate::ir::Round;
use crate::matrix::{BitProduct, Element, InMemory, MatrixRows, Mma, Quads, Scale, Scales, Wgmma};

/// An operation of a warp, for `i32 (ptr in, ptr out, ptr shared)`: `in` has the registers that are brought, and `out` those that are
/// given, each as 32 lanes in a row; `shared` is the window of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exchange {
    Mma(Mma),
    Wgmma(Wgmma),
    Rows(MatrixRows),
}

/// The exported function of [`Exchange::text`].
pub const ENTRY: &str = "cudaway_exchange";

/// What names of such functions begin with.
const PREFIX: &str = "cudaway_exchange.";

const ELEMENTS: [Element; 17] = [
    Element::F16,
    Element::Bf16,
    Element::Tf32,
    Element::E4m3,
    Element::E5m2,
    Element::E2m3,
    Element::E3m2,
    Element::E2m1,
    Element::PackedE2m1,
    Element::F32,
    Element::F64,
    Element::S4,
    Element::U4,
    Element::S8,
    Element::U8,
    Element::S32,
    Element::B1,
];

const ROUNDS: [Round; 5] = [Round::Nearest, Round::NearestAway, Round::Zero, Round::Down, Round::Up];

impl Exchange {
    /// Its function's name, without the `@`.
    pub fn name(&self) -> String {
        let numbers: Vec<String> = self.numbers().iter().map(u32::to_string).collect();
        format!("{PREFIX}{}", numbers.join("."))
    }

    /// That of a name.
    pub fn of(name: &str) -> Option<Exchange> {
        let numbers = name.strip_prefix(PREFIX)?.split('.').map(|number| number.parse().ok());
        let found = Numbers(numbers.collect::<Option<Vec<u32>>>()?.into_iter()).exchange()?;
        // No other name is its.
        (found.name() == name).then_some(found)
    }

    /// Adds the function to a module under a name of its own.
    pub(crate) fn function(&self, b: &mut Builder) -> Result<String, Unsupported> {
        match self {
            Exchange::Mma(mma) => matrix::function(b, mma),
            Exchange::Wgmma(wgmma) => warpgroup::exchange(b, wgmma),
            Exchange::Rows(moved) => rows::exchange(b, moved),
        }
    }

    /// LLVM IR of the function, by the name of [`ENTRY`].
    pub fn text(&self, vector_bits: u32) -> Result<String, Unsupported> {
        let mut b = Builder::for_vectors(vector_bits, false);
        let function = self.function(&mut b)?;
        let params = "ptr %in, ptr %out, ptr %shared";
        b.line(format_args!("define i32 @{ENTRY}({params}) nounwind {{"));
        b.start_block("entry");
        b.inst(format_args!("%result = call i32 {function}({params})"));
        b.inst("ret i32 %result");
        b.line("}");
        Ok(b.finish())
    }

    fn numbers(&self) -> Vec<u32> {
        match self {
            Exchange::Mma(mma) => [vec![0], of_mma(mma)].concat(),
            Exchange::Wgmma(Wgmma { mma, columns, a, b_is_transposed }) => {
                let a = a.map_or(0, |a| 1 + u32::from(a.is_transposed) + 2 * u32::from(a.is_negative));
                [vec![1, *columns, a, u32::from(*b_is_transposed)], of_mma(mma)].concat()
            }
            // The offset is brought.
            Exchange::Rows(MatrixRows { count, is_transposed, stores, offset: _ }) => {
                vec![2, u32::from(*count), u32::from(*is_transposed), u32::from(*stores)]
            }
        }
    }
}

fn place<T: PartialEq>(all: &[T], one: &T) -> u32 {
    all.iter().position(|it| it == one).map_or(0, |at| at as u32)
}

fn of_mma(mma: &Mma) -> Vec<u32> {
    let Mma { m, n, k, a, b, c, d, quads, selector, scales, saturates, round, bit_product } = *mma;
    let [a, b, c, d] = [a, b, c, d].map(|element| place(&ELEMENTS, &element));
    let quads = quads.map_or(0, |it| 1 + u32::from(it.a_by_columns) + 2 * u32::from(it.b_by_columns));
    let scales = scales.map_or(0, |it| 2 * it.blocks + u32::from(it.kind == Scale::Ue4m3));
    let selector = selector.map_or(0, |it| 1 + it);
    let rest = [u32::from(saturates), place(&ROUNDS, &round), u32::from(bit_product == BitProduct::And)];
    [&[m, n, k, a, b, c, d, quads, selector, scales][..], &rest].concat()
}

/// Those of a name.
struct Numbers(std::vec::IntoIter<u32>);

impl Numbers {
    fn exchange(mut self) -> Option<Exchange> {
        match self.0.next()? {
            0 => Some(Exchange::Mma(self.mma()?)),
            1 => {
                let (columns, a, b_is_transposed) = (self.0.next()?, self.0.next()?, self.flag()?);
                let a = a.checked_sub(1);
                let a = a.map(|a| InMemory { is_transposed: a & 1 == 1, is_negative: a & 2 == 2 });
                Some(Exchange::Wgmma(Wgmma { mma: self.mma()?, columns, a, b_is_transposed }))
            }
            2 => {
                let count = u8::try_from(self.0.next()?).ok()?;
                let (is_transposed, stores) = (self.flag()?, self.flag()?);
                Some(Exchange::Rows(MatrixRows { count, is_transposed, stores, offset: 0 }))
            }
            _ => None,
        }
    }

    fn flag(&mut self) -> Option<bool> {
        Some(self.0.next()? == 1)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        all.get(self.0.next()? as usize).copied()
    }

    fn mma(&mut self) -> Option<Mma> {
        let (m, n, k) = (self.0.next()?, self.0.next()?, self.0.next()?);
        let (a, b) = (self.one_of(&ELEMENTS)?, self.one_of(&ELEMENTS)?);
        let (c, d) = (self.one_of(&ELEMENTS)?, self.one_of(&ELEMENTS)?);
        let quads = self.0.next()?.checked_sub(1);
        let quads = quads.map(|it| Quads { a_by_columns: it & 1 == 1, b_by_columns: it & 2 == 2 });
        let selector = self.0.next()?.checked_sub(1);
        let scales = Some(self.0.next()?).filter(|&it| it > 0);
        let scales = scales
            .map(|it| Scales { blocks: it / 2, kind: if it % 2 == 1 { Scale::Ue4m3 } else { Scale::Ue8m0 } });
        let (saturates, round) = (self.flag()?, self.one_of(&ROUNDS)?);
        let bit_product = if self.flag()? { BitProduct::And } else { BitProduct::Xor };
        Some(Mma { m, n, k, a, b, c, d, quads, selector, scales, saturates, round, bit_product })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mma(a: Element, c: Element) -> Mma {
        Mma::plain([16, 8, 16], [a, a, c])
    }

    #[test]
    fn a_name_says_all() {
        let mut all = vec![];
        for a in ELEMENTS {
            all.push(mma(a, Element::F32));
        }
        for round in ROUNDS {
            all.push(Mma { round, saturates: true, ..mma(Element::F64, Element::F64) });
        }
        for (nth, kind) in [Scale::Ue8m0, Scale::Ue4m3].into_iter().enumerate() {
            let (flag, blocks) = (nth == 1, 1 << nth);
            let quads = Some(Quads { a_by_columns: flag, b_by_columns: !flag });
            all.push(Mma { quads, selector: Some(nth as u32), ..mma(Element::F16, Element::F16) });
            let scales = Some(Scales { blocks, kind });
            all.push(Mma { scales, bit_product: BitProduct::And, ..mma(Element::E2m1, Element::F32) });
        }
        let mut exchanges: Vec<Exchange> = all.iter().copied().map(Exchange::Mma).collect();
        for is_transposed in [false, true] {
            for other in [false, true] {
                let a = Some(InMemory { is_transposed, is_negative: other });
                let mma = mma(Element::F16, Element::F32);
                for (a, columns) in [(a, 8), (None, 256)] {
                    exchanges.push(Exchange::Wgmma(Wgmma { mma, columns, a, b_is_transposed: other }));
                }
                exchanges.push(Exchange::Rows(MatrixRows {
                    count: 4,
                    is_transposed,
                    stores: other,
                    offset: 0,
                }));
            }
        }
        let names: std::collections::HashSet<String> = exchanges.iter().map(Exchange::name).collect();
        // Two of registers differ from the others in nothing.
        assert_eq!(names.len(), exchanges.iter().collect::<std::collections::HashSet<_>>().len());
        for exchange in exchanges {
            assert_eq!(Exchange::of(&exchange.name()), Some(exchange));
        }
        for wrong in [
            "memcpy",
            "cudaway_exchange.",
            "cudaway_exchange.2.4.1",
            "cudaway_exchange.2.4.1.0.7",
            "cudaway_exchange.3.1",
        ] {
            assert_eq!(Exchange::of(wrong), None, "{wrong}");
        }
    }
}
