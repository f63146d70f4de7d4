//! Tables of factors, shared by all plans of this process that use them, and gone with the last of those.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;

use crate::columns::Columns;
use crate::element::{Direction, Real};
use crate::isa::{Isa, Kernels};
use crate::line::Line;

type Key = (TypeId, usize, Direction, usize);
type Shared = HashMap<Key, Weak<dyn Any + Send + Sync>>;

static TABLES: LazyLock<Mutex<Shared>> = LazyLock::new(Mutex::default);

/// What is known under `key`, or else made by `new`, outside of the lock: long lengths take a while.
fn shared<V: Any + Send + Sync>(key: Key, new: impl FnOnce() -> Option<V>) -> Option<Arc<V>> {
    let known = TABLES.lock().get(&key).and_then(Weak::upgrade);
    if let Some(known) = known.and_then(|known| known.downcast().ok()) {
        return Some(known);
    }
    let made = Arc::new(new()?);
    let mut tables = TABLES.lock();
    tables.retain(|_, table| table.strong_count() > 0);
    let weak: Weak<V> = Arc::downgrade(&made);
    tables.insert(key, weak);
    Some(made)
}

pub(crate) fn columns<T: Real>(
    n: usize,
    direction: Direction,
    kernels: &'static Kernels<T>,
) -> Option<Arc<Columns<T>>> {
    let key = (TypeId::of::<Columns<T>>(), n, direction, std::ptr::from_ref(kernels).addr());
    shared(key, || Columns::new(n, direction, kernels))
}

pub(crate) fn line<T: Real>(n: usize, direction: Direction, isa: Isa) -> Arc<Line<T>> {
    let key = (TypeId::of::<Line<T>>(), n, direction, isa as usize);
    shared(key, || Some(Line::new(n, direction, isa))).expect("there is a line for every length")
}
