//! Which pods get a task.
