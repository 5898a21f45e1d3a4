//! URLs of clusters: `redis+cluster://[user][:password@]host[:port],host[:port]…`.

use deadpool_redis::redis::{ConnectionAddr, ConnectionInfo};

use super::address::Address;
use crate::store::{
    StoreError,
    redis::{error::misconfigured, url},
};

/// A URL for each node that the URL of a cluster names; None, if it is that of one server.
pub(in crate::store::redis) fn seeds(url: &str) -> Result<Option<Vec<Box<str>>>, StoreError> {
    let Some((scheme, rest)) = url::cluster_scheme(url) else { return Ok(None) };
    let scheme = scheme.trim_end_matches("+cluster");
    let (hosts, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // A list of URLs may have been meant; what stands there may be a password.
    if hosts.matches('@').count() > 1 {
        return Err(misconfigured(
            "the URL of the Redis Cluster has more than one `@`: the user and the password stand once, before \
             the first host, and an `@` in them is written `%40`"
                .to_owned(),
        ));
    }
    let (login, hosts) = match hosts.rsplit_once('@') {
        Some((login, hosts)) => (format!("{login}@"), hosts),
        None => (String::new(), hosts),
    };
    let one = |host: &str| format!("{scheme}://{login}{host}{behind}").into();
    Ok(Some(hosts.split(',').map(one).collect()))
}

/// Where the given nodes are, all of which are reached alike.
pub(super) fn check(
    infos: Vec<ConnectionInfo>,
) -> Result<Box<[(Address, ConnectionInfo)]>, StoreError> {
    let Some(first) = infos.first().cloned() else {
        return Err(misconfigured("a Redis Cluster is given by one node at least".to_owned()));
    };
    let secure = |info: &ConnectionInfo| matches!(info.addr(), ConnectionAddr::TcpTls { .. });
    let login = |info: &ConnectionInfo| {
        let settings = info.redis_settings();
        (settings.username().map(str::to_owned), settings.password().map(str::to_owned))
    };
    let seed = |info: ConnectionInfo| {
        let Some(address) = Address::of(&info) else {
            return Err(misconfigured(
                "the nodes of a Redis Cluster are reached over TCP, and not over a socket of the system"
                    .to_owned(),
            ));
        };
        let database = info.redis_settings().db();
        if database != 0 {
            return Err(misconfigured(format!(
                "the URL of the Redis Cluster has the database {database}: a cluster only has 0"
            )));
        }
        if secure(&info) != secure(&first) || login(&info) != login(&first) {
            return Err(misconfigured(
                "the URLs of a Redis Cluster differ in their users or passwords, or in whether they \
                 ask for TLS"
                    .to_owned(),
            ));
        }
        Ok((address, info))
    };
    infos.into_iter().map(seed).collect()
}
