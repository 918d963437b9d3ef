//! Objects of pods, against a model of the API server and under paused time.

mod cluster;

mod accounts;
mod at_rest;
mod away;
mod files;
mod odd;
mod real;
mod services;
mod tokens;
mod watches;
mod without_watch;
