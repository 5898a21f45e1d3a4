use std::io::Write as _;

use deadpool_redis::redis::{Arg, Cmd, RedisWrite as _};

use super::{
    parameters,
    script::{ACQUIRE, REFUND, Script},
    wire::Request,
};
use crate::store::Refund;

/// A command for the server.
pub(super) struct Call {
    pub(super) command: Cmd,
    script: Option<&'static Script>,
}

impl Call {
    /// Decides these requests, in order.
    pub(super) fn acquire<'a>(requests: impl Iterator<Item = &'a Request> + Clone) -> Self {
        let hits = requests.clone().map(|request| request.hits().len()).sum::<usize>();
        let bytes = requests.clone().map(Request::len).sum::<usize>();
        let mut command = Cmd::with_capacity(5 + 2 * hits, 64 + bytes);
        command.arg("EVALSHA").arg(ACQUIRE.sha()).arg(hits);
        for request in requests.clone() {
            request.names().for_each(|name| command.write_arg(name));
        }
        let mut runs = requests.map(Request::parameters).peekable();
        while let Some(parameters) = runs.next() {
            let mut times = 1;
            while runs.next_if_eq(&parameters).is_some() {
                times += 1;
            }
            command.arg(times).write_arg(parameters);
        }
        Self { command, script: Some(&ACQUIRE) }
    }

    /// Forgets states.
    pub(super) fn reset(prefix: &str, keys: &[&[u8]]) -> Self {
        let mut command = Cmd::new();
        command.arg("DEL");
        keys.iter().for_each(|key| name(&mut command, prefix, key));
        Self { command, script: None }
    }

    /// Gives back what was charged.
    pub(super) fn refund(prefix: &str, refunds: &[Refund<'_>]) -> Self {
        let mut command = Cmd::new();
        command.arg("EVALSHA").arg(REFUND.sha()).arg(refunds.len());
        refunds.iter().for_each(|refund| name(&mut command, prefix, refund.key));
        for Refund { meter, units, stamp, .. } in refunds {
            let mut text = Vec::new();
            parameters::write_units(&mut text, meter, *units);
            command.write_arg(&text);
            text.clear();
            parameters::stamp(&mut text, *stamp);
            command.write_arg(&text);
        }
        Self { command, script: Some(&REFUND) }
    }

    /// The same call with the script itself, for a server that has forgotten it.
    pub(super) fn eval(&self) -> Option<Cmd> {
        let mut eval = Cmd::new();
        eval.arg("EVAL").arg(self.script?.source());
        for arg in self.command.args_iter().skip(2) {
            if let Arg::Simple(arg) = arg {
                eval.write_arg(arg);
            }
        }
        Some(eval)
    }
}

/// Writing to memory does not fail.
fn name(command: &mut Cmd, prefix: &str, key: &[u8]) {
    let mut name = command.writer_for_next_arg();
    let _ = name.write_all(prefix.as_bytes());
    let _ = name.write_all(b":");
    let _ = name.write_all(key);
}
