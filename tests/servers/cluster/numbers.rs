//! Nodes come and go under new addresses, as pods do.

#[path = "../../../src/store/redis/cluster/numbers.rs"]
mod found;

use std::time::Duration;

use found::Numbers;

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

#[test]
fn a_node_that_comes_back_soon_is_known() {
    let mut numbers = Numbers::default();
    assert_eq!([1, 2, 3].map(|node| numbers.of(&node, minutes(0))), [1, 2, 3]);
    numbers.stay(|node| *node != 2, minutes(1));
    // Not yet: requests to the other may be under way.
    assert_eq!(numbers.of(&4, minutes(2)), 4);
    assert_eq!(numbers.of(&2, minutes(9)), 2);
    numbers.stay(|_| true, minutes(9));
    assert_eq!(numbers.of(&5, minutes(99)), 5);
}

#[test]
fn who_left_long_ago_leaves_the_number_to_another() {
    let mut numbers = Numbers::default();
    for node in 1..=4 {
        numbers.of(&node, minutes(0));
    }
    numbers.stay(|node| *node != 3, minutes(10));
    numbers.stay(|node| *node != 3 && *node != 1, minutes(11));
    // Being away is counted from when it was seen first.
    numbers.stay(|node| *node != 3 && *node != 1, minutes(12));
    assert_eq!(numbers.of(&5, minutes(12)), 3);
    assert_eq!(numbers.of(&6, minutes(12)), 5);
    assert_eq!(numbers.of(&7, minutes(13)), 1);
    // Whose number was given away is a new one.
    assert_eq!(numbers.of(&3, minutes(13)), 6);
}

#[test]
fn however_often_nodes_are_replaced_numbers_stay_small() {
    let mut numbers = Numbers::default();
    for round in 0..10_000_u64 {
        let now = minutes(5 * round);
        let present = |node: &u64| node / 6 == round;
        let given: Vec<u32> = (0..6).map(|at| numbers.of(&(round * 6 + at), now)).collect();
        assert!(given.iter().all(|number| (1..=12).contains(number)), "{round}: {given:?}");
        let mut apart = given.clone();
        apart.sort_unstable();
        apart.dedup();
        assert_eq!(apart.len(), 6, "{round}: {given:?}");
        numbers.stay(present, now);
    }
}
