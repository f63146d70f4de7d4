//! Failures that are known: exact tests, and what each of them says today. There are no patterns. A failure that is not listed or
//! says something else, a listed test that passes, and one that is not there any more: each of them fails the run.

use std::collections::{BTreeMap, BTreeSet};

/// A test that does not pass today.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// All of its name.
    pub test: String,
    /// All that it says.
    pub said: String,
    /// For people: whose fault it is.
    pub why: String,
    /// It measures time, so on some machines and days it passes.
    pub wavers: bool,
}

/// What a run found.
#[derive(Clone, Copy, Debug)]
pub struct Ran<'a> {
    pub test: &'a str,
    /// What was said, if it failed.
    pub failed: Option<&'a str>,
}

/// Whether a failure is a known one.
pub fn find<'a>(known: &'a [Known], test: &str, said: &str) -> Option<&'a Known> {
    known.iter().find(|it| it.test == test && it.said == said)
}

/// What is not as the list says, a line each. `ran` are all tests that the list could name.
pub fn differences(known: &[Known], ran: &[Ran]) -> Vec<String> {
    let mut lines = vec![];
    let mut listed: BTreeMap<&str, &Known> = BTreeMap::new();
    for one in known {
        if listed.insert(&one.test, one).is_some() {
            lines.push(format!("{}: listed twice", one.test));
        }
    }
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for one in ran {
        if !seen.insert(one.test) && listed.contains_key(one.test) {
            lines.push(format!("{}: more than one test has this name", one.test));
        }
        match (listed.get(one.test), one.failed) {
            (None, None) => {}
            (None, Some(said)) => lines.push(format!("{}: {said}", one.test)),
            (Some(entry), None) if entry.wavers => {}
            (Some(_), None) => {
                lines.push(format!("{}: is listed as failing, and does not fail", one.test));
            }
            (Some(entry), Some(said)) if entry.said == said => {}
            (Some(entry), Some(said)) => {
                lines.push(format!("{}: {said}; listed is that it says: {}", one.test, entry.said));
            }
        }
    }
    let gone = listed.keys().filter(|test| !seen.contains(**test));
    lines.extend(gone.map(|test| format!("{test}: is listed as failing, and is no test")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(test: &str, said: &str) -> Known {
        Known { test: test.to_owned(), said: said.to_owned(), why: String::new(), wavers: false }
    }

    fn passed(test: &str) -> Ran<'_> {
        Ran { test, failed: None }
    }

    fn failed<'a>(test: &'a str, said: &'a str) -> Ran<'a> {
        Ran { test, failed: Some(said) }
    }

    #[test]
    fn exactly_what_is_listed_may_fail() {
        assert!(differences(&[known("a", "1")], &[failed("a", "1"), passed("b")]).is_empty());
        assert_eq!(differences(&[known("a", "1")], &[failed("a", "1"), failed("ab", "1")]), ["ab: 1"]);
    }

    #[test]
    fn another_answer_is_a_failure() {
        let lines = differences(&[known("a", "1")], &[failed("a", "11")]);
        assert_eq!(lines, ["a: 11; listed is that it says: 1"]);
        assert!(find(&[known("a", "1")], "a", "11").is_none());
        assert!(find(&[known("a", "1")], "ab", "1").is_none());
    }

    #[test]
    fn an_entry_that_heals_or_goes_is_a_failure() {
        let list = [known("a", "1"), known("b", "2")];
        let expected =
            ["a: is listed as failing, and does not fail", "b: is listed as failing, and is no test"];
        assert_eq!(differences(&list, &[passed("a")]), expected);
        let wavering = Known { wavers: true, ..known("a", "1") };
        assert!(differences(std::slice::from_ref(&wavering), &[passed("a")]).is_empty());
        assert_eq!(differences(&[wavering], &[failed("a", "2")]).len(), 1);
    }

    #[test]
    fn an_entry_means_one_test() {
        let lines = differences(&[known("a", "1")], &[failed("a", "1"), failed("a", "1")]);
        assert_eq!(lines, ["a: more than one test has this name"]);
        let lines = differences(&[known("a", "1"), known("a", "2")], &[failed("a", "2")]);
        assert_eq!(lines, ["a: listed twice"]);
    }
}
