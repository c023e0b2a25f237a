//! What the compiler says of a function that does not fit as a handler.
//!
//! Each file of `tests/ui/` is such a function. It is compiled against the library that this test was
//! built with, and must be refused with what it lists as `//~`. Mostly the library's own words: the
//! compiler's change with it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What every case begins with.
const PRELUDE: &str = "#![allow(dead_code, unused)]
use sprag::{Client, Context, Verdict, Worker, worker::Data};
#[derive(serde::Serialize, serde::Deserialize)]
struct Charge { cents: u64 }
impl sprag::Job for Charge { const KIND: &'static str = \"charge\"; }
";

const FITS: &str = "
async fn fits(job: Charge, context: Context, data: Data<u8>) -> Result<u64, Verdict> {
    Ok(job.cents)
}
fn worker(client: &Client) { let _ = Worker::builder(client).handler(fits); }
";

/// A compiler with the crates that this test was built with.
struct Compiler {
    deps: PathBuf,
    sprag: PathBuf,
    serde: PathBuf,
    scratch: tempfile::TempDir,
}

impl Compiler {
    /// Of several builds of the library the latest, and the `serde` that fits it.
    fn find() -> Self {
        let test = std::env::current_exe().expect("this test");
        let deps = test.parent().expect("a folder").to_owned();
        let sprag = builds(&deps, "libsprag-").pop().expect("the library is built for its tests");
        let scratch = tempfile::tempdir().expect("a folder");
        let mut compiler = Self { serde: PathBuf::new(), scratch, sprag, deps };
        let mut said = String::new();
        for serde in builds(&compiler.deps, "libserde-").into_iter().rev() {
            compiler.serde = serde;
            match compiler.compile("fits", FITS) {
                Ok(()) => return compiler,
                Err(why) => said = why,
            }
        }
        panic!("a function that fits does not compile: {said}");
    }

    /// Compiles a source after the prelude; what the compiler says if it refuses it.
    fn compile(&self, name: &str, source: &str) -> Result<(), String> {
        let file = self.scratch.path().join(format!("{name}.rs"));
        fs::write(&file, format!("{PRELUDE}{source}")).expect("written");
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let done = Command::new(rustc)
            .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--color=never"])
            .arg("--out-dir")
            .arg(self.scratch.path())
            .arg(format!("-Ldependency={}", self.deps.display()))
            .arg(format!("--extern=sprag={}", self.sprag.display()))
            .arg(format!("--extern=serde={}", self.serde.display()))
            .arg(&file)
            .output()
            .expect("rustc");
        match done.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        }
    }
}

/// The builds of a crate, the latest last.
fn builds(deps: &Path, prefix: &str) -> Vec<PathBuf> {
    let is_meant = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(prefix) && name.ends_with(".rlib")
    };
    let entries = fs::read_dir(deps).expect("the folder of this test");
    let mut found: Vec<_> =
        entries.map(|entry| entry.expect("an entry").path()).filter(is_meant).collect();
    found.sort_by_key(|path| path.metadata().and_then(|data| data.modified()).expect("a time"));
    found
}

#[test]
fn a_function_that_does_not_fit_is_told_why() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let mut cases: Vec<_> =
        fs::read_dir(cases).expect("cases").map(|case| case.expect("an entry").path()).collect();
    cases.sort();
    assert!(cases.len() >= 7, "{cases:?}");
    let compiler = Compiler::find();
    for case in cases {
        let source = fs::read_to_string(&case).expect("UTF-8");
        let name = case.file_stem().and_then(|name| name.to_str()).expect("a name");
        let said = compiler.compile(name, &source).expect_err(name);
        // Shown by `cargo test --test ui -- --nocapture`.
        eprintln!("=== {name}\n{said}");
        let expected: Vec<_> =
            source.lines().filter_map(|line| line.strip_prefix("//~ ")).collect();
        assert!(!expected.is_empty(), "{name} says what it expects");
        for line in expected {
            assert!(said.contains(line), "{name}: {line:?} is not said in\n{said}");
        }
    }
}
