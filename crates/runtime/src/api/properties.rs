//! Device properties.
