//! Links between pages: each leads to a file, and to a heading of it if it names one; and every page is in the list of contents.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use anyhow::Result;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::read;
use crate::setup::root;

const CONTENTS: &str = "docs/SUMMARY.md";

/// A link or a picture, and where its text lies in the page.
pub struct Link {
    pub target: String,
    pub range: Range<usize>,
}

/// Those that do not lead to another site.
pub fn relative(page: &str) -> Vec<Link> {
    let events = Parser::new_ext(page, Options::ENABLE_TABLES).into_offset_iter();
    let links = events.filter_map(|(event, range)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Some(Link { target: dest_url.into_string(), range })
        }
        _ => None,
    });
    links.filter(|link| !link.target.contains("://") && !link.target.starts_with("mailto:")).collect()
}

/// What a link in the page leads to, as a path from the root, and the heading that it names.
pub fn resolve(page: &str, target: &str) -> (PathBuf, Option<String>) {
    let (file, heading) = match target.split_once('#') {
        Some((file, heading)) => (file, Some(heading.to_owned())),
        None => (target, None),
    };
    if file.is_empty() {
        return (PathBuf::from(page), heading);
    }
    let mut path = PathBuf::new();
    for part in Path::new(page).parent().unwrap_or(Path::new("")).join(file).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    (path, heading)
}

/// A sentence for each link of the page that leads nowhere.
pub fn broken(page: &str, text: &str) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for link in relative(text) {
        let (path, heading) = resolve(page, &link.target);
        let line = text[..link.range.start].lines().count().max(1);
        if !root().join(&path).exists() {
            findings.push(format!("{page}:{line}: the link {} leads to no file", link.target));
        } else if let Some(heading) = heading
            && path.extension().is_some_and(|suffix| suffix == "md")
            && !headings(&read(&path.to_string_lossy())?).contains(&heading)
        {
            findings.push(format!("{page}:{line}: {} has no heading #{heading}", path.display()));
        }
    }
    Ok(findings)
}

/// A sentence for each page of docs/ that the list of contents does not have, or has twice.
pub fn not_in_contents() -> Result<Vec<String>> {
    let mut listed: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for link in relative(&read(CONTENTS)?) {
        *listed.entry(resolve(CONTENTS, &link.target).0).or_default() += 1;
    }
    let pages = super::pages()?.into_iter().filter(|page| page != CONTENTS && page != "python/README.md");
    let findings = pages.filter_map(|page| match listed.get(Path::new(&page)) {
        Some(1) => None,
        Some(n) => Some(format!("{CONTENTS} has {page} {n} times")),
        None => Some(format!("{CONTENTS} does not have {page}")),
    });
    Ok(findings.collect())
}

/// The names that links may give to the headings of a page: small letters, digits, hyphens for spaces.
fn headings(page: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut title: Option<String> = None;
    for event in Parser::new_ext(page, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => title = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let title = title.take().unwrap_or_default();
                let kept = title.chars().filter_map(|c| match c {
                    ' ' => Some('-'),
                    c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                    _ => None,
                });
                names.insert(kept.collect::<String>().to_lowercase());
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(title) = &mut title {
                    title.push_str(&part);
                }
            }
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_from_where_its_page_lies() {
        let to = |target| resolve("docs/a.md", target);
        assert_eq!(to("../README.md#limits"), (PathBuf::from("README.md"), Some("limits".to_owned())));
        assert_eq!(to("b.md"), (PathBuf::from("docs/b.md"), None));
        assert_eq!(to("#here"), (PathBuf::from("docs/a.md"), Some("here".to_owned())));
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named() {
        let page =
            "[a](ptx.md) [b](no-such.md)\n\n[c](LD_PRELOAD.md#no-such) [d](https://x.org/y) `[e](f)`\n";
        let found = broken("docs/x.md", page).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("no-such.md") && found[1].contains("#no-such"), "{found:?}");
    }

    #[test]
    fn headings_are_named_as_sites_name_them() {
        let names = headings("# What `cudaway run` does: all\n\n## AMD GPUs\n");
        assert_eq!(names, ["amd-gpus", "what-cudaway-run-does-all"].map(str::to_owned).into());
    }
}
