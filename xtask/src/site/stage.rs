//! The folder that mdbook reads: docs/ as it is, and what its pages link to outside of it, below `repository`, so that the site is
//! whole without a server and without the tree.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::{AT_ROOT, links, pages, read};
use crate::setup::root;

/// Below the pages of docs/.
const OUTSIDE: &str = "repository";

pub fn lay_out(stage: &Path) -> Result<()> {
    let docs = stage.join("docs");
    let _ = fs::remove_dir_all(&docs);
    fs::create_dir_all(docs.join(OUTSIDE))?;
    fs::copy(root().join("book.toml"), stage.join("book.toml")).context("book.toml")?;
    fs::write(stage.join("site.css"), include_str!("site.css"))?;
    for entry in fs::read_dir(root().join("docs"))? {
        let entry = entry?;
        if entry.path().extension().is_none_or(|suffix| suffix != "md") && entry.path().is_file() {
            fs::copy(entry.path(), docs.join(entry.file_name()))?;
        }
    }
    for page in pages()?.iter().filter(|page| page.starts_with("docs/") || AT_ROOT.contains(&page.as_str())) {
        let text = staged(page, &read(page)?, &docs)?;
        fs::write(docs.join(place(Path::new(page))), text)?;
    }
    Ok(())
}

/// Where a file of the tree lies in the site, from the site's root.
fn place(path: &Path) -> PathBuf {
    match path.strip_prefix("docs") {
        Ok(below) => below.to_path_buf(),
        Err(_) if path.extension().is_some_and(|suffix| suffix == "md") => Path::new(OUTSIDE).join(path),
        // A browser shows it instead of offering to keep it.
        Err(_) => Path::new(OUTSIDE).join(format!("{}.txt", path.display())),
    }
}

/// The page with links to where things lie in the site; files outside of docs/ are copied there.
fn staged(page: &str, text: &str, docs: &Path) -> Result<String> {
    let own = place(Path::new(page));
    let up = "../".repeat(own.components().count() - 1);
    let mut staged = text.to_owned();
    // From the end, so that what was found still lies where it was found.
    for link in links::relative(text).into_iter().rev() {
        let (path, heading) = links::resolve(page, &link.target);
        let heading = heading.map(|heading| format!("#{heading}")).unwrap_or_default();
        let readme = path.join("README.md");
        let path = if root().join(&readme).is_file() { readme } else { path };
        let source = &text[link.range.clone()];
        let is_page = path.starts_with("docs") || AT_ROOT.iter().any(|name| Path::new(name) == path);
        let new = if root().join(&path).is_dir() {
            // A folder has no page of its own.
            source
                .strip_prefix('[')
                .and_then(|it| it.rsplit_once("]("))
                .map_or(source, |(words, _)| words)
                .to_owned()
        } else {
            let place = if is_page { place(&path) } else { place(&path.with_extension(plain(&path))) };
            if !is_page {
                let to = docs.join(&place);
                fs::create_dir_all(to.parent().context("a folder")?)?;
                fs::copy(root().join(&path), to).with_context(|| path.display().to_string())?;
            }
            let target = if link.target.starts_with('#') {
                link.target.clone()
            } else {
                format!("{up}{}{heading}", place.display())
            };
            source.replace(&format!("]({})", link.target), &format!("]({target})"))
        };
        staged.replace_range(link.range, &new);
    }
    Ok(staged)
}

/// The suffix of a file that is not rendered as a page.
fn plain(path: &Path) -> String {
    let suffix = path.extension().unwrap_or_default().to_string_lossy().into_owned();
    if suffix == "md" { "markdown".to_owned() } else { suffix }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_where_things_lie_in_the_site() {
        let folder = testkit::temporary().unwrap();
        let page = "[a](../README.md#limits) [b](ptx.md) [c](../xtask/src/main.rs) [d](#x) [e](../examples) [f](https://x.org)";
        let text = staged("docs/faq.md", page, folder.path()).unwrap();
        let wanted = "[a](repository/README.md#limits) [b](ptx.md) [c](repository/xtask/src/main.rs.txt) [d](#x) e [f](https://x.org)";
        assert_eq!(text, wanted);
        assert!(folder.path().join("repository/xtask/src/main.rs.txt").is_file());
        let text = staged("README.md", "[a](docs/ptx.md) [b](SECURITY.md)", folder.path()).unwrap();
        assert_eq!(text, "[a](../ptx.md) [b](../repository/SECURITY.md)");
    }
}
