//! The table of all sandboxes and containers. Locked briefly only: slow operations lock the objects
//! themselves.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
    sync::Arc,
};

use parking_lot::Mutex;
use rubelet_cri::CriErrorKind;

use crate::{
    container::Container,
    error::{Result, RuntimeError},
    sandbox::Sandbox,
};

/// All objects that calls can find, and the reserved names.
#[derive(Debug, Default)]
pub(crate) struct ObjectTable(Mutex<Objects>);

#[derive(Debug, Default)]
struct Objects {
    sandboxes: BTreeMap<String, Arc<Sandbox>>,
    containers: BTreeMap<String, Arc<Container>>,
    /// Names to identifiers.
    names: HashMap<ReservedName, String>,
}

/// A name that only one object can have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ReservedName {
    Sandbox(String),
    Container(String),
}

/// A reserved name; released on drop unless [`Self::keep`] was called.
#[derive(Debug)]
pub(crate) struct NameReservation {
    table: Arc<ObjectTable>,
    name: Option<ReservedName>,
}

impl NameReservation {
    /// Keeps the name until the object is removed.
    pub(crate) fn keep(mut self) {
        self.name = None;
    }
}

impl Drop for NameReservation {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            self.table.release(&name);
        }
    }
}

impl ObjectTable {
    /// Reserves a name for the object `id`.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        name: ReservedName,
        id: &str,
    ) -> Result<NameReservation> {
        let mut objects = self.0.lock();
        if let Some(holder) = objects.names.get(&name) {
            let (ReservedName::Sandbox(text) | ReservedName::Container(text)) = &name;
            return Err(RuntimeError::new(
                CriErrorKind::AlreadyExists,
                format!("name {text:?} is reserved for {holder:?}"),
            ));
        }
        objects.names.insert(name.clone(), id.to_owned());
        Ok(NameReservation {
            table: Arc::clone(self),
            name: Some(name),
        })
    }

    pub(crate) fn release(&self, name: &ReservedName) {
        self.0.lock().names.remove(name);
    }

    pub(crate) fn add_sandbox(&self, sandbox: &Arc<Sandbox>) {
        let mut objects = self.0.lock();
        objects
            .sandboxes
            .insert(sandbox.id.clone(), Arc::clone(sandbox));
    }

    pub(crate) fn add_container(&self, container: &Arc<Container>) {
        let mut objects = self.0.lock();
        objects
            .containers
            .insert(container.id.clone(), Arc::clone(container));
    }

    pub(crate) fn remove_sandbox(&self, id: &str) {
        self.0.lock().sandboxes.remove(id);
    }

    pub(crate) fn remove_container(&self, id: &str) {
        self.0.lock().containers.remove(id);
    }

    /// The sandbox with that identifier or unique prefix of one.
    pub(crate) fn sandbox(&self, id: &str) -> Option<Arc<Sandbox>> {
        find(&self.0.lock().sandboxes, id)
    }

    /// The container with that identifier or unique prefix of one.
    pub(crate) fn container(&self, id: &str) -> Option<Arc<Container>> {
        find(&self.0.lock().containers, id)
    }

    pub(crate) fn sandboxes(&self) -> Vec<Arc<Sandbox>> {
        self.0.lock().sandboxes.values().cloned().collect()
    }

    pub(crate) fn containers(&self) -> Vec<Arc<Container>> {
        self.0.lock().containers.values().cloned().collect()
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
    // The whole identifier sorts before longer ones, so it is the first match.
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
        let table = Arc::new(ObjectTable::default());
        let name = || ReservedName::Sandbox("a".to_owned());
        let first = table.reserve(name(), "1").unwrap();
        let error = table.reserve(name(), "2").unwrap_err();
        assert_eq!(error.kind, CriErrorKind::AlreadyExists);
        assert!(
            table
                .reserve(ReservedName::Container("a".to_owned()), "3")
                .is_ok()
        );
        drop(first);
        table.reserve(name(), "2").unwrap().keep();
        assert!(table.reserve(name(), "4").is_err());
        table.release(&name());
        assert!(table.reserve(name(), "4").is_ok());
    }
}
