//! Which policy applies to which requests.

mod grammar;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
};

use http::Method;
use matchit::Router;
use smallvec::SmallVec;

use self::grammar::{add, by_rank, parse};
use super::{Policy, PolicyError};
use crate::key::RequestHead;

/// Policies for the routes of a service: which one applies to a request, by its method and path.
///
/// A route is a path in the syntax of axum, `/users/{id}` or `/files/{*path}`, alone or behind one or
/// several methods: `GET /users/{id}`, `POST,PUT /users`. Paths are compared as axum compares them, so
/// another spelling of a path, with a slash at its end or in other letters, is another path here as
/// there. The pattern says which path is meant, so an exact path goes before a parameter, and that before
/// the rest of a path, in whatever order they stand; and a route with the method of a request goes before
/// one without methods. `GET` includes `HEAD`, as routers have it, unless that has a route of its own. A
/// `{*rest}` takes an empty rest as well, since `nest_service` does: `/files/{*path}` is also `/files/`. Where
/// a handler takes `any` method, name none here either: clients may send methods of their own.
///
/// A route may be [exempt](PolicySetBuilder::exempt): no policy applies to it. To a request that no
/// route takes, the policy that was named [`otherwise`](PolicySetBuilder::otherwise)
/// applies; without one, no limit does.
///
/// The layer stands around the whole router: within a nested one, paths lack what they were nested under.
///
/// ```
/// use tollgate::{
///     Limit, Limiter, MemoryStore, PeerIp, Policy, PolicySet, Quota, RateLimitLayer, key,
/// };
///
/// let login = Policy::new("login").limit(PeerIp, Limit::new("tries", Quota::per_minute(5)));
/// let orders = Policy::new("orders")
///     .limit(key::path_param("shop"), Limit::new("writes", Quota::per_second(20)));
/// let api = Policy::new("api").limit(PeerIp, Limit::new("requests", Quota::per_second(50)));
///
/// let policies = PolicySet::builder()
///     .route("POST /login", login.build()?)
///     .route("POST,PUT /shops/{shop}/orders", orders.build()?)
///     .otherwise(api.build()?)
///     .build()?;
/// let layer = RateLimitLayer::with_policies(policies, &Limiter::new(MemoryStore::new()));
/// # Ok::<(), tollgate::PolicyError>(())
/// ```
#[derive(Clone)]
pub struct PolicySet(Arc<Inner>);

struct Inner {
    policies: Vec<Policy>,
    otherwise: Option<Policy>,
    routes: Vec<Route>,
    /// The routes of each method that has routes of its own, those without methods among them.
    methods: HashMap<Method, Router<usize>>,
    /// Those without methods.
    any: Router<usize>,
}

struct Route {
    /// As it was given.
    text: Box<str>,
    template: Box<str>,
    /// The place of its policy; an exempt one has none.
    policy: Option<usize>,
}

impl PolicySet {
    /// Begins a set.
    pub fn builder() -> PolicySetBuilder {
        PolicySetBuilder::default()
    }

    /// The policies, each once.
    pub fn policies(&self) -> impl ExactSizeIterator<Item = &Policy> {
        self.0.policies.iter()
    }

    /// The policy of this name.
    #[must_use]
    pub fn policy(&self, name: &str) -> Option<&Policy> {
        self.policies().find(|policy| policy.name() == name)
    }

    /// The policy that applies to a request, if one does, and the template of the route that said so.
    ///
    /// ```
    /// # use tollgate::{Limit, PeerIp, Policy, PolicySet, Quota, RequestHead};
    /// # let limit = Limit::new("requests", Quota::per_second(5));
    /// # let users = Policy::new("users").limit(PeerIp, limit).build()?;
    /// let policies = PolicySet::builder().route("GET /users/{id}", users).build()?;
    /// let request = http::Request::get("/users/7").body(()).unwrap();
    /// let (policy, route) = policies.find(RequestHead::new(&request)).unwrap();
    /// assert_eq!((policy.name(), route), ("users", Some("/users/{id}")));
    /// # Ok::<(), tollgate::PolicyError>(())
    /// ```
    #[must_use]
    pub fn find(&self, head: RequestHead<'_>) -> Option<(&Policy, Option<&str>)> {
        match self.matched(head) {
            Some(Match { policy, template, .. }) => Some((policy?, Some(template))),
            None => self.otherwise().map(|policy| (policy, None)),
        }
    }

    /// The route that a request takes, exempt or not, as it was given: for a service that does more by
    /// routes than limit, so that both go by the same one.
    ///
    /// ```
    /// # use tollgate::{PolicySet, RequestHead};
    /// let policies = PolicySet::builder().exempt("GET,POST /users/{id}").build()?;
    /// let request = http::Request::get("/users/7").body(()).unwrap();
    /// assert_eq!(policies.route_of(RequestHead::new(&request)), Some("GET,POST /users/{id}"));
    /// # Ok::<(), tollgate::PolicyError>(())
    /// ```
    #[must_use]
    pub fn route_of(&self, head: RequestHead<'_>) -> Option<&str> {
        self.matched(head).map(|found| found.route)
    }

    /// The route that a request takes.
    pub(crate) fn matched<'p>(&self, head: RequestHead<'p>) -> Option<Match<'_, 'p>> {
        let router = self.0.methods.get(head.method()).unwrap_or(&self.0.any);
        let found = router.at(head.uri().path()).ok()?;
        let Route { text, template, policy } = &self.0.routes[*found.value];
        let policy = policy.map(|policy| &self.0.policies[policy]);
        Some(Match { policy, route: text, template, params: found.params.iter().collect() })
    }

    /// The policy for the others.
    pub(crate) fn otherwise(&self) -> Option<&Policy> {
        self.0.otherwise.as_ref()
    }
}

/// The route that a request takes.
pub(crate) struct Match<'s, 'p> {
    /// None, if it is exempt.
    pub(crate) policy: Option<&'s Policy>,
    route: &'s str,
    pub(crate) template: &'s str,
    pub(crate) params: SmallVec<[(&'s str, &'p str); 4]>,
}

/// One policy for all requests.
impl From<Policy> for PolicySet {
    fn from(policy: Policy) -> Self {
        Self(Arc::new(Inner {
            policies: vec![policy.clone()],
            otherwise: Some(policy),
            routes: Vec::new(),
            methods: HashMap::new(),
            any: Router::new(),
        }))
    }
}

impl fmt::Debug for PolicySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicySet").field("policies", &self.0.policies).finish_non_exhaustive()
    }
}

/// Builds a [`PolicySet`].
#[derive(Debug, Default)]
#[must_use]
pub struct PolicySetBuilder {
    routes: Vec<(String, Option<Policy>)>,
    otherwise: Option<Policy>,
}

impl PolicySetBuilder {
    /// The policy of a route: a path, or methods, a space and a path. One policy may have several.
    pub fn route(mut self, route: impl Into<String>, policy: Policy) -> Self {
        self.routes.push((route.into(), Some(policy)));
        self
    }

    /// A route that no policy applies to, also where there is one [`otherwise`](Self::otherwise): the
    /// checks of an orchestrator, say.
    ///
    /// ```
    /// # use tollgate::{Limit, PeerIp, Policy, PolicySet, Quota};
    /// # let limit = Limit::new("requests", Quota::per_second(5));
    /// # let api = Policy::new("api").limit(PeerIp, limit).build()?;
    /// let policies = PolicySet::builder().exempt("GET /healthz").otherwise(api).build()?;
    /// # Ok::<(), tollgate::PolicyError>(())
    /// ```
    pub fn exempt(mut self, route: impl Into<String>) -> Self {
        self.routes.push((route.into(), None));
        self
    }

    /// The policy of requests that no route takes. Default: none, so that they are not limited.
    pub fn otherwise(mut self, policy: Policy) -> Self {
        self.otherwise = Some(policy);
        self
    }

    /// The set.
    ///
    /// # Errors
    ///
    /// If a route is malformed, or cannot be told from another one, or if two policies have one name, as
    /// they would share their buckets. The message names the route.
    pub fn build(self) -> Result<PolicySet, PolicyError> {
        let mut policies: Vec<Policy> = Vec::new();
        let mut routes = Vec::new();
        let mut parsed = Vec::new();
        let all =
            self.routes.iter().filter_map(|(_, policy)| policy.as_ref()).chain(&self.otherwise);
        for policy in all {
            place_of(&mut policies, policy)?;
        }
        for (text, policy) in &self.routes {
            let (methods, path) = parse(text)?;
            parsed.push((text, methods, path));
            let policy =
                policy.as_ref().map(|policy| place_of(&mut policies, policy)).transpose()?;
            routes.push(Route { text: text.as_str().into(), template: path.into(), policy });
        }
        let mut named: HashSet<Method> =
            parsed.iter().flat_map(|(_, methods, _)| methods.iter().cloned()).collect();
        if named.contains(&Method::GET) {
            named.insert(Method::HEAD);
        }
        let routes_of = |method: Option<&Method>| {
            let mut router = Router::new();
            let places = by_rank(&parsed, method);
            for at in &places {
                let (text, _, path) = &parsed[*at];
                add(&mut router, *at, text, path)?;
            }
            // Empty rests, unless that path has a route of its own.
            for at in places {
                if let Some((before, _)) = parsed[at].2.split_once("{*") {
                    let _taken = router.insert(before, at);
                }
            }
            Ok::<_, PolicyError>(router)
        };
        let methods = named.iter().map(|method| Ok((method.clone(), routes_of(Some(method))?)));
        Ok(PolicySet(Arc::new(Inner {
            methods: methods.collect::<Result<_, PolicyError>>()?,
            any: routes_of(None)?,
            policies,
            otherwise: self.otherwise,
            routes,
        })))
    }
}

fn place_of(policies: &mut Vec<Policy>, policy: &Policy) -> Result<usize, PolicyError> {
    match policies.iter().position(|other| other.name() == policy.name()) {
        Some(at) if Arc::ptr_eq(&policies[at].0, &policy.0) => Ok(at),
        Some(_) => Err(PolicyError::new(format!(
            "two policies are named `{}`: they would share their buckets",
            policy.name()
        ))),
        None => {
            policies.push(policy.clone());
            Ok(policies.len() - 1)
        }
    }
}
