//! What CUDALibrarySamples print on NVIDIA's GPUs: their READMEs show it. They look at nothing of it themselves.

/// What a README shows below the line that starts a program, if it does.
pub fn shown(readme: &str, program: &str) -> Option<String> {
    let mut lines = readme.lines().map(str::trim);
    let starts = |line: &str| line.starts_with('$') && line.ends_with(&format!("/{program}"));
    lines.find(|line| starts(line))?;
    let mut lines =
        lines.skip_while(|line| !line.starts_with("Sample example output") && !line.starts_with('#'));
    if lines.next()?.starts_with('#') {
        return None;
    }
    let block = lines.skip_while(|line| !line.starts_with("```")).skip(1);
    Some(block.take_while(|line| !line.starts_with("```")).map(|line| format!("{line}\n")).collect())
}

/// The first line that says another thing: numbers may differ as two GPUs' functions do, by 1e-5 of themselves and two of the
/// last digit that is printed. Parts that end in `=====` are compared as far as both go: some READMEs are of more numbers than
/// the program prints now.
pub fn difference(printed: &str, shown: &str) -> Option<String> {
    let (printed, shown) = (parts(printed), parts(shown));
    if printed.len() != shown.len() {
        return Some(format!("{} parts, of which its README has {}", printed.len(), shown.len()));
    }
    let lines = printed.iter().zip(&shown).flat_map(|(printed, shown)| printed.iter().zip(shown));
    let (printed, shown) = lines.into_iter().find(|(printed, shown)| !is_same(printed, shown))?;
    Some(format!("prints {printed} where its README has {shown}"))
}

fn parts(text: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.split(|line| *line == "=====").filter(|part| !part.is_empty()).map(<[&str]>::to_vec).collect()
}

fn is_same(printed: &str, shown: &str) -> bool {
    let near = |(a, b): (&str, &str)| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= 2e-6 + 1e-5 * b.abs(),
        _ => a == b,
    };
    let printed: Vec<&str> = printed.split_whitespace().collect();
    let shown: Vec<&str> = shown.split_whitespace().collect();
    printed.len() == shown.len() && printed.into_iter().zip(shown).all(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "# Usage #1\n```\n$  ./bin/first\n```\n\nSample example output:\n\n```\nHost\n0.5\n=====\n```\n\n\
                          # Usage #2\n```\n$  ./second\n```\n# Usage #3\n```\n$  ./third\n```\nSample example output:\n```\n7\n```";

    #[test]
    fn a_readme_shows_what_stands_below_its_program() {
        assert_eq!(shown(README, "first").as_deref(), Some("Host\n0.5\n=====\n"));
        assert_eq!(shown(README, "second"), None);
        assert_eq!(shown(README, "third").as_deref(), Some("7\n"));
        assert_eq!(shown(README, "fourth"), None);
    }

    #[test]
    fn numbers_may_differ_in_their_last_digits() {
        assert_eq!(difference("Host\n47.776665\n", "Host\n47.776642\n"), None);
        assert!(difference("Host\n47.778\n", "Host\n47.776642\n").is_some());
        assert!(difference("Host\n", "Device\n").is_some());
        assert_eq!(difference("1.0   2\n", "1.0 2\n"), None);
    }

    #[test]
    fn parts_are_compared_as_far_as_both_go() {
        assert_eq!(
            difference("Host\n1\n=====\nDevice\n1\n", "Host\n1\n2\n=====\n\nDevice\n1\n2\n=====\n"),
            None
        );
        assert!(difference("Host\n1\n=====\nDevice\n3\n", "Host\n1\n2\n=====\nDevice\n1\n2\n").is_some());
        assert!(difference("Host\n1\n", "Host\n1\n=====\nDevice\n1\n").is_some());
    }
}
