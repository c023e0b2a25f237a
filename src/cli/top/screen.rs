//! The terminal: taken, and given back however the program ends.

use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::{Hide, Show},
        execute,
        terminal::{
            Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
            enable_raw_mode,
        },
    },
};
use std::{
    io::{Result, Stdout, Write, stdout},
    mem::ManuallyDrop,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

/// The terminal is ours.
static TAKEN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// The terminal while it is ours. Dropped, it is what it was before.
pub(super) struct Screen {
    /// Never dropped: it would tell stderr of a terminal that is gone, and panic.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    pub(super) fn take() -> Result<Self> {
        HOOK.call_once(give_back_on_panic);
        let mut screen = Self { terminal: terminal()? };
        screen.take_again()?;
        Ok(screen)
    }

    /// Whatever stands on it is drawn anew.
    pub(super) fn take_again(&mut self) -> Result<()> {
        give_back();
        TAKEN.store(true, Ordering::SeqCst);
        // From here on a failure gives back what was taken.
        self.terminal = terminal()?;
        enable_raw_mode()?;
        enter(&mut stdout())
    }

    /// Until it is taken again nothing is drawn.
    pub(super) fn give_back(&self) {
        give_back();
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> Result<()> {
        // A task that panicked has given the terminal back: nothing is to be written on it any more.
        if TAKEN.load(Ordering::SeqCst) {
            self.terminal.draw(draw)?;
        }
        Ok(())
    }
}

fn terminal() -> Result<ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>> {
    Terminal::new(CrosstermBackend::new(stdout())).map(ManuallyDrop::new)
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// The message of a panic shall stand on the usual screen, readable.
fn give_back_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back();
        usual(panic);
    }));
}

/// Once, whoever comes first: a panic, or the end. There is nobody to tell of a failure.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = disable_raw_mode();
        let _ = leave(&mut stdout());
    }
}

fn enter(out: &mut impl Write) -> Result<()> {
    execute!(out, EnterAlternateScreen, Clear(ClearType::All), Hide)
}

fn leave(out: &mut impl Write) -> Result<()> {
    execute!(out, LeaveAlternateScreen, Show)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_given_back() {
        let mut parser = vt100::Parser::default();
        let mut written = Vec::new();
        enter(&mut written).expect("written");
        // What another program has left there, or a terminal that has no other screen.
        parser.process(b"\x1b[?47hleft");
        parser.process(&written);
        assert!(parser.screen().alternate_screen() && parser.screen().hide_cursor());
        assert_eq!(parser.screen().contents(), "");
        written.clear();
        leave(&mut written).expect("written");
        parser.process(&written);
        assert!(!parser.screen().alternate_screen() && !parser.screen().hide_cursor());
    }

    #[test]
    fn a_panic_gives_it_back_first() {
        HOOK.call_once(give_back_on_panic);
        TAKEN.store(true, Ordering::SeqCst);
        let panicked = std::thread::spawn(|| panic!("on purpose")).join();
        assert!(panicked.is_err() && !TAKEN.load(Ordering::SeqCst));
    }
}
