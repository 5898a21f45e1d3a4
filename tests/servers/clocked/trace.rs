//! Random requests to a store over several servers, next to a model of what it must answer.

use tollgate::store::Refund;

use super::Clocked;
use crate::{
    differential::{self, Kind, Trace, trace::Place},
    script::Model,
};

/// Batches on one set of keys and quotas, before others take their place.
const EPOCH: usize = 40;

/// At least so many requests, in the order in which they come. `TOLLGATE_SEED` repeats a run, and
/// `TOLLGATE_STEPS` sets its length.
pub(crate) fn compare(clocked: &mut Clocked, kind: Kind, place: Place, steps: usize) {
    let (seed, whole) = differential::settings(steps);
    let mut trace = Trace::on(place, seed, kind);
    let mut steps = 0;
    while steps < whole {
        clocked.renew();
        let mut model = Model::default();
        let pool = trace.pool();
        for _ in 0..EPOCH {
            let (batch, now) = trace.batch(&pool);
            let found = model.acquire(&batch, now);
            let hits = batch.iter().flatten();
            let expected = hits.clone().zip(found).map(|(hit, found)| found.standing(hit, now));
            let standings = clocked.decide_all(now, &batch);
            let context =
                format!("{kind:?}, {place:?}, TOLLGATE_SEED={seed}, step {steps}, at {now:?}");
            assert_eq!(standings.len(), hits.clone().count(), "{context}");
            for ((hit, standing), expected) in hits.zip(&standings).zip(expected) {
                assert_eq!(*standing, expected, "{hit:?}; {context}: {batch:?}");
            }
            trace.learn(&batch, &standings);
            steps += batch.len();
            if trace.once_in(2) {
                let charged = trace.refunds();
                let now = if trace.once_in(2) { now } else { trace.tick() };
                let refunds: Vec<Refund<'_>> = charged.iter().map(differential::refund).collect();
                model.refund(&refunds, now);
                clocked.give_back(now, &refunds);
            }
            if trace.once_in(8) {
                let key = trace.reset(&pool);
                model.reset(key.as_bytes());
                clocked.forget(key);
            }
        }
    }
    trace.assert_thorough(steps);
}
