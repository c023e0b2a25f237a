//! What the documents say of the tests is true.

use std::{collections::BTreeSet, path::Path};

fn read_all(dir: &Path, text: &mut String, modules: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read_all(&path, text, modules);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            text.push_str(&std::fs::read_to_string(&path).expect("UTF-8"));
            modules.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
}

#[test]
fn every_test_that_readme_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut text, mut modules) = (String::new(), BTreeSet::new());
    read_all(&root.join("tests"), &mut text, &mut modules);
    let readme = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    let rows = readme.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
    let names: Vec<_> = rows.filter_map(|row| row.rsplit('`').nth(1)).collect();
    assert!(names.len() >= 7, "{names:?}");
    for name in names {
        let there = match name.strip_suffix("::") {
            Some(module) => modules.contains(module),
            None => text.contains(&format!("fn {name}(")),
        };
        assert!(there, "README names {name}");
    }
}
