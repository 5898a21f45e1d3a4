//! The calls of one batch, in one write.

use deadpool_redis::redis::{Pipeline, RedisResult, ServerErrorKind, Value};

use super::batch::Group;
use crate::store::{
    StoreError,
    redis::{node::Node, script::ACQUIRE, slot::Link},
};

impl Node {
    /// What the server answers to the call of each group, when all have run.
    pub(super) async fn ask_all(
        &self,
        groups: &[Group],
        used: &mut Option<Link>,
    ) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        if let [group] = groups {
            return Ok(vec![self.ask(&group.call(), used).await]);
        }
        let link = self.link(used).await?;
        match send(link, groups).await {
            Ok(answers) => {
                self.slots.answered(link);
                let read = |answer| match answer {
                    Value::ServerError(error) => Err(self.failed(link, error.into())),
                    value => Ok(value),
                };
                Ok(answers.into_iter().map(read).collect())
            }
            Err(cause) => Err(self.failed(link, cause)),
        }
    }
}

async fn send(link: &mut Link, groups: &[Group]) -> RedisResult<Vec<Value>> {
    let mut commands = Pipeline::with_capacity(groups.len());
    for group in groups {
        commands.add_command(group.call().command);
    }
    let mut answers = send_all(link, &commands).await?;
    if answers.iter().any(is_no_script) {
        Box::pin(send_again(link, groups, &mut answers)).await?;
    }
    Ok(answers)
}

/// For a server that has forgotten the script: with the script once before all, and then with each of those
/// for which that did not last.
async fn send_again(link: &mut Link, groups: &[Group], answers: &mut [Value]) -> RedisResult<()> {
    for each in [false, true] {
        let forgotten = groups.iter().zip(&mut *answers);
        let forgotten: Vec<_> = forgotten.filter(|(_, answer)| is_no_script(answer)).collect();
        if forgotten.is_empty() {
            break;
        }
        let mut commands = Pipeline::with_capacity(forgotten.len() + 1);
        if !each {
            commands.cmd("SCRIPT").arg("LOAD").arg(ACQUIRE.source());
        }
        for (group, _) in &forgotten {
            let call = group.call();
            let eval = if each { call.eval() } else { None };
            commands.add_command(eval.unwrap_or(call.command));
        }
        let again = send_all(link, &commands).await?.into_iter().skip(usize::from(!each));
        forgotten.into_iter().zip(again).for_each(|((_, answer), new)| *answer = new);
    }
    Ok(())
}

async fn send_all(link: &mut Link, commands: &Pipeline) -> RedisResult<Vec<Value>> {
    link.connection.send_packed_commands(commands, 0, commands.len()).await
}

fn is_no_script(answer: &Value) -> bool {
    let no_script = Some(ServerErrorKind::NoScript);
    matches!(answer, Value::ServerError(error) if error.kind() == no_script)
}
