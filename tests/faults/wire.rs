//! What befalls a command on its way, or its answer on the way back.

use crate::support::Proxy;

/// A fault that strikes one command.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wire {
    DropReply,
    ResetReply,
    HalfReply,
    ResetHalfReply,
    /// The reply is on its way when the connection is cut.
    CutReply,
    CloseBefore,
    ResetBefore,
    /// The connection is closed, and the request arrives after its repeat was answered.
    ArriveLate,
    /// Reply after reply is lost.
    DropThree,
    Split,
    /// The server says so once.
    Error(&'static str),
}

impl Wire {
    pub(crate) const ALL: [Self; 22] = [
        Self::DropReply,
        Self::ResetReply,
        Self::HalfReply,
        Self::ResetHalfReply,
        Self::CutReply,
        Self::CloseBefore,
        Self::ResetBefore,
        Self::ArriveLate,
        Self::DropThree,
        Self::Split,
        Self::Error("NOSCRIPT No matching script. Please use EVAL."),
        Self::Error("LOADING Redis is loading the dataset in memory"),
        Self::Error("BUSY Redis is busy running a script."),
        Self::Error("READONLY You can't write against a read only replica."),
        Self::Error("MASTERDOWN Link with MASTER is down"),
        Self::Error("CLUSTERDOWN Hash slot not served"),
        Self::Error("TRYAGAIN Multiple keys request during rehashing of slot"),
        Self::Error("MOVED 7638 127.0.0.1:7001"),
        Self::Error("ASK 7638 127.0.0.1:7001"),
        Self::Error("NOREPLICAS Not enough good replicas to write."),
        Self::Error("MISCONF Redis is configured to save RDB snapshots"),
        Self::Error("OOM command not allowed when used memory > 'maxmemory'."),
    ];

    /// Whether a plain command may meet it: what only scripts know is left out.
    pub(crate) fn befalls_plain_commands(self) -> bool {
        !matches!(self, Self::Error(line) if line.starts_with("NOSCRIPT"))
    }

    /// Strikes the `skip`-th next command of that name.
    pub(crate) fn arm(self, proxy: &Proxy, command: &str, skip: u64) {
        let on = proxy.on(command).after(skip);
        match self {
            Self::DropReply => on.drop_reply(),
            Self::ResetReply => on.reset_reply(),
            Self::HalfReply => on.half_reply(),
            Self::ResetHalfReply => on.reset_half_reply(),
            Self::CutReply => on.hold_reply(),
            Self::CloseBefore => on.close_before(),
            Self::ResetBefore => on.reset_before(),
            Self::ArriveLate => on.arrive_late(),
            Self::DropThree => on.times(3).drop_reply(),
            Self::Split => on.split(),
            Self::Error(line) => on.answer_error(line),
        }
    }

    /// How often it strikes.
    pub(crate) fn strikes(self) -> u64 {
        if matches!(self, Self::DropThree) { 3 } else { 1 }
    }

    /// What has to happen while the call is under way; `struck` counts earlier strikes.
    pub(crate) async fn meanwhile(self, proxy: &Proxy, command: &str, struck: u64) {
        if matches!(self, Self::CutReply) {
            proxy.wait_struck(command, struck + 1).await;
            proxy.cut_all();
        }
    }
}
