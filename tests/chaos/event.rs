//! What happens to Redis, and what that may mean for requests.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    Killed,
    Restarted,
    Frozen,
    BlackHole,
    Late,
    Slow5,
    Slow50,
    Slow500,
    Jitter,
    Cut,
    Flush,
    ReadOnly,
    OutOfMemory,
    Misconf,
    Loading,
    Busy,
    MaxClients,
    Password,
    Right,
    ClockAhead,
    ClockBehind,
}

/// Who decides while it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decides {
    /// Redis, which never fails, but for what a busy machine makes late.
    Redis,
    /// The policy alone.
    Policy,
    /// The policy; Redis, which cannot write, still denies.
    PolicyOrDenial,
    /// Redis or the policy.
    Either,
}

impl Event {
    /// Its row in the table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Killed => "killed, restarted empty after the event",
            Self::Restarted => "killed and restarted empty at once",
            Self::Frozen => "frozen",
            Self::BlackHole => "black hole",
            Self::Late => "replies 150 ms late",
            Self::Slow5 => "5 ms slower",
            Self::Slow50 => "50 ms slower",
            Self::Slow500 => "500 ms slower",
            Self::Jitter => "0 to 60 ms slower at random",
            Self::Cut => "connections cut in the middle of a reply",
            Self::Flush => "scripts forgotten every 5 ms",
            Self::ReadOnly => "read-only (demoted)",
            Self::OutOfMemory => "out of memory",
            Self::Misconf => "cannot save (MISCONF)",
            Self::Loading => "loading its data",
            Self::Busy => "busy with another's script",
            Self::MaxClients => "no more clients",
            Self::Password => "wrong password",
            Self::Right => "missing right",
            Self::ClockAhead => "clock an hour ahead, then back",
            Self::ClockBehind => "clock an hour behind, then back",
        }
    }

    pub(crate) const fn decides(self) -> Decides {
        match self {
            Self::Flush | Self::ClockAhead | Self::ClockBehind => Decides::Redis,
            Self::ReadOnly | Self::OutOfMemory | Self::Misconf => Decides::PolicyOrDenial,
            Self::Restarted | Self::Slow5 | Self::Slow50 | Self::Jitter | Self::Cut => {
                Decides::Either
            }
            Self::Killed
            | Self::Frozen
            | Self::BlackHole
            | Self::Late
            | Self::Slow500
            | Self::Loading
            | Self::Busy
            | Self::MaxClients
            | Self::Password
            | Self::Right => Decides::Policy,
        }
    }

    /// How often it empties the server, or has a step of its clock expire all keys: each time, a key has
    /// its burst once more.
    pub(crate) const fn fresh_bursts(self) -> u64 {
        match self {
            Self::Killed | Self::Restarted | Self::ClockAhead | Self::ClockBehind => 1,
            _ => 0,
        }
    }

    pub(crate) const fn needs_proxy(self) -> bool {
        matches!(
            self,
            Self::BlackHole
                | Self::Late
                | Self::Slow5
                | Self::Slow50
                | Self::Slow500
                | Self::Jitter
                | Self::Cut
        )
    }

    pub(crate) const fn needs_clock(self) -> bool {
        matches!(self, Self::ClockAhead | Self::ClockBehind)
    }
}
