//! How kernels launch graphs. Source: CUDA Programming Guide, "Device Graph Launch".

/// Launches that one graph may fire while it runs.
pub const MOST_FIRED: u32 = 120;
/// Launches that may wait in a graph's tail.
pub const MOST_IN_TAIL: u32 = 255;

/// How a kernel launches a graph, in the order of the streams that stand for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// After the launching graph and all that it has fired.
    Tail,
    FireAndForget,
    /// Fired from the environment that the launching graph was launched in.
    Sibling,
}

impl Mode {
    pub const ALL: [Mode; 3] = [Mode::Tail, Mode::FireAndForget, Mode::Sibling];

    /// The streams that stand for modes, as CUDA's device runtime numbers them.
    #[must_use]
    pub fn of_stream(stream: u64) -> Option<Mode> {
        match stream {
            0x0100_0000_0000_0000 => Some(Mode::Tail),
            0x0200_0000_0000_0000 => Some(Mode::FireAndForget),
            0x0300_0000_0000_0000 => Some(Mode::Sibling),
            _ => None,
        }
    }

    /// How many of them a graph may have.
    #[must_use]
    pub fn most(self) -> u32 {
        if self == Mode::Tail { MOST_IN_TAIL } else { MOST_FIRED }
    }
}
