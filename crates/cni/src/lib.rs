//! Networks of pods: CNI configurations, and a bridge of its own.
