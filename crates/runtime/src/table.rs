//! Which sandboxes and containers there are. Held for moments only: what takes time happens on the
//! objects themselves.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
    sync::{Arc, Mutex},
};

use rubelet_cri::CriErrorKind;

use crate::{
    container::Container,
    events::lock,
    fault::{Fault, Outcome},
    sandbox::Sandbox,
};

/// All objects that callers know, and the names that are taken.
#[derive(Debug, Default)]
pub(crate) struct Table(Mutex<Objects>);

#[derive(Debug, Default)]
struct Objects {
    sandboxes: BTreeMap<String, Arc<Sandbox>>,
    containers: BTreeMap<String, Arc<Container>>,
    /// The identifier that a name stands for.
    names: HashMap<Name, String>,
}

/// A name that only one object can have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    Sandbox(String),
    Container(String),
}

/// A name that is taken until this is dropped, unless it is kept.
#[derive(Debug)]
pub(crate) struct Reservation {
    table: Arc<Table>,
    name: Option<Name>,
}

impl Reservation {
    /// The object is there now; its name is free again when it is removed.
    pub(crate) fn keep(mut self) {
        self.name = None;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            self.table.release(&name);
        }
    }
}

impl Table {
    /// Takes a name for the object `id`.
    pub(crate) fn reserve(self: &Arc<Self>, name: Name, id: &str) -> Outcome<Reservation> {
        let mut objects = lock(&self.0);
        if let Some(holder) = objects.names.get(&name) {
            let (Name::Sandbox(text) | Name::Container(text)) = &name;
            return Err(Fault::new(
                CriErrorKind::AlreadyExists,
                format!("the name {text:?} is taken by {holder:?}"),
            ));
        }
        objects.names.insert(name.clone(), id.to_owned());
        Ok(Reservation {
            table: Arc::clone(self),
            name: Some(name),
        })
    }

    pub(crate) fn release(&self, name: &Name) {
        lock(&self.0).names.remove(name);
    }

    pub(crate) fn add_sandbox(&self, sandbox: &Arc<Sandbox>) {
        let mut objects = lock(&self.0);
        objects
            .sandboxes
            .insert(sandbox.id.clone(), Arc::clone(sandbox));
    }

    pub(crate) fn add_container(&self, container: &Arc<Container>) {
        let mut objects = lock(&self.0);
        objects
            .containers
            .insert(container.id.clone(), Arc::clone(container));
    }

    pub(crate) fn remove_sandbox(&self, id: &str) {
        lock(&self.0).sandboxes.remove(id);
    }

    pub(crate) fn remove_container(&self, id: &str) {
        lock(&self.0).containers.remove(id);
    }

    /// The sandbox with that identifier, or the only one whose identifier begins so.
    pub(crate) fn sandbox(&self, id: &str) -> Option<Arc<Sandbox>> {
        find(&lock(&self.0).sandboxes, id)
    }

    /// The container with that identifier, or the only one whose identifier begins so.
    pub(crate) fn container(&self, id: &str) -> Option<Arc<Container>> {
        find(&lock(&self.0).containers, id)
    }

    pub(crate) fn sandboxes(&self) -> Vec<Arc<Sandbox>> {
        lock(&self.0).sandboxes.values().cloned().collect()
    }

    pub(crate) fn containers(&self) -> Vec<Arc<Container>> {
        lock(&self.0).containers.values().cloned().collect()
    }
}

fn find<T>(objects: &BTreeMap<String, Arc<T>>, id: &str) -> Option<Arc<T>> {
    if id.is_empty() {
        return None;
    }
    let range = (Bound::Included(id), Bound::Unbounded);
    let mut matches = objects
        .range::<str, _>(range)
        .take_while(|(key, _)| key.starts_with(id));
    let (key, first) = matches.next()?;
    (key == id || matches.next().is_none()).then(|| Arc::clone(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_an_identifier_is_enough_where_it_is_the_only_one() {
        let objects: BTreeMap<String, Arc<u8>> = [("ab1", 1), ("ab2", 2), ("b", 3), ("bc", 4)]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), Arc::new(value)))
            .collect();
        let find = |id: &str| find(&objects, id).map(|found| *found);
        assert_eq!(find("ab1"), Some(1));
        assert_eq!(find("ab"), None);
        assert_eq!(find("b"), Some(3), "the whole identifier wins");
        assert_eq!(find(""), None);
        assert_eq!(find("x"), None);
    }

    #[test]
    fn a_name_is_taken_until_its_creation_fails_or_its_object_goes() {
        let table = Arc::new(Table::default());
        let name = || Name::Sandbox("a".to_owned());
        let first = table.reserve(name(), "1").unwrap();
        let error = table.reserve(name(), "2").unwrap_err();
        assert_eq!(error.kind, CriErrorKind::AlreadyExists);
        assert!(table.reserve(Name::Container("a".to_owned()), "3").is_ok());
        drop(first);
        table.reserve(name(), "2").unwrap().keep();
        assert!(table.reserve(name(), "4").is_err());
        table.release(&name());
        assert!(table.reserve(name(), "4").is_ok());
    }
}
