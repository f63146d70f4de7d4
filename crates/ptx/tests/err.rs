//! Diagnostics as a user sees them: `tests/err/NAME.ptx` gives `tests/err/NAME.txt`. `BLESS=1` rewrites.

use std::path::Path;

#[test]
fn broken_texts_are_explained() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/err");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "ptx") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let parsed = ptx::parse(&text);
        let lines = ptx::LineIndex::new(&text);
        let mut seen: String = parsed.diagnostics.iter().map(|it| it.render(name, &lines) + "\n").collect();
        let kept: Vec<_> = parsed.module.functions().map(|it| it.name.value).collect();
        seen.push_str(&format!("read: {}\n", kept.join(" ")));
        let golden = path.with_extension("txt");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&golden, &seen).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(seen, expected, "{name}: BLESS=1 rewrites");
        count += 1;
    }
    assert!(count > 0, "no cases in {}", folder.display());
}
