//! What the settings share: LLVM IR text of each pure operation, scalar or W lanes wide (helper back-l).
