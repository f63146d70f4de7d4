//! In which order what kernels have asked for comes after them, for every device that runs it when the grid that asked has ended.
//!
//! A grid's children come one after the other in the order of their launches, each with all that comes of it; then what the grid gave
//! to its tail stream, in that order, each with all that comes of it; then the grid is done. That is an order of every stream and of
//! every event.
//! Source: CUDA C++ Programming Guide, "CUDA Dynamic Parallelism".

/// Where a grid stands among those that kernels have launched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Grids that it was launched inside of.
    pub depth: u32,
    /// Launches by kernels that are outstanding while its blocks run, whatever has ended of all others: itself, those that wait for it,
    /// and what waits for those in their tails. The host's launches are none of them.
    pub outstanding: usize,
}

impl Standing {
    /// Of a child, where so many launches are in the tail of its parent, whose standing this is.
    #[must_use]
    pub fn of_child(self, n_tail: usize) -> Standing {
        Standing { depth: self.depth + 1, outstanding: self.outstanding + n_tail + 1 }
    }

    /// Of a launch in the tail, the first of so many that are left there. The grid itself has ended.
    #[must_use]
    pub fn in_tail(self, n_left: usize) -> Standing {
        Standing { depth: self.depth, outstanding: self.outstanding.saturating_sub(1) + n_left }
    }

    /// Launches that its tail has room for where no more than `limit` may be outstanding. Where none is left it may launch nothing.
    #[must_use]
    pub fn room(self, limit: usize) -> usize {
        limit.saturating_sub(self.outstanding)
    }
}

/// What a kernel asks for.
pub trait Work {
    /// A copy or a fill is none, and counts nowhere.
    fn is_launch(&self) -> bool;
}

/// What comes after a grid of that standing: its children, then its tail.
pub fn behind<W: Work>(standing: Standing, children: Vec<W>, tail: Vec<W>) -> Vec<(W, Standing)> {
    let mut n_left = tail.iter().filter(|work| work.is_launch()).count();
    let of_child = standing.of_child(n_left);
    let mut all: Vec<_> = children.into_iter().map(|work| (work, of_child)).collect();
    all.extend(tail.into_iter().map(|work| {
        let standing = standing.in_tail(n_left);
        n_left -= usize::from(work.is_launch());
        (work, standing)
    }));
    all
}

/// Runs all of it, each with all that comes of it: `run` does one thing, to its end where that asks for more, and gives what it has
/// asked for. It ends with the first error.
pub fn run_all<W, E>(
    mut waiting: Vec<(W, Standing)>,
    mut run: impl FnMut(W, Standing) -> Result<Vec<(W, Standing)>, E>,
) -> Result<(), E> {
    // The next one last.
    waiting.reverse();
    while let Some((work, standing)) = waiting.pop() {
        waiting.extend(run(work, standing)?.into_iter().rev());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A launch that appends its name, with what it launches; a copy where nothing may come of it.
    #[derive(Clone)]
    struct Grid {
        name: &'static str,
        children: Vec<Grid>,
        tail: Vec<Grid>,
        is_copy: bool,
    }

    impl Work for Grid {
        fn is_launch(&self) -> bool {
            !self.is_copy
        }
    }

    fn grid(name: &'static str, children: &[Grid], tail: &[Grid]) -> Grid {
        Grid { name, children: children.to_vec(), tail: tail.to_vec(), is_copy: false }
    }

    fn ran(first: Grid) -> Vec<(&'static str, u32, usize)> {
        let mut all = vec![];
        let ran = run_all(vec![(first, Standing::default())], |grid, standing| {
            all.push((grid.name, standing.depth, standing.outstanding));
            Ok::<_, ()>(behind(standing, grid.children, grid.tail))
        });
        assert_eq!(ran, Ok(()));
        all
    }

    #[test]
    fn children_come_with_all_that_is_theirs_and_the_tail_behind_them() {
        // As examples/dynamic_parallelism.cu has it in `tails`, whose list an H200 gives: 10, 11, 20, 21, 30.
        let append = |name| grid(name, &[], &[]);
        let go_on = |name, first, second| grid(name, &[append(first)], &[append(second)]);
        let all = ran(grid("tails", &[go_on("a", "10", "11")], &[go_on("b", "20", "21"), append("30")]));
        let names: Vec<_> = all.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, ["tails", "a", "10", "11", "b", "20", "21", "30"]);
        // Outstanding by the guide: what has not ended. Two in the tail wait for `a`, and 11 in the tail of `a` waits for 10.
        let outstanding: Vec<_> = all.iter().map(|(.., outstanding)| *outstanding).collect();
        assert_eq!(outstanding, [0, 3, 5, 3, 2, 4, 2, 1]);
    }

    #[test]
    fn copies_keep_their_place_and_count_nowhere() {
        let copy = Grid { is_copy: true, ..grid("copy", &[], &[]) };
        let all = ran(grid("p", &[grid("c", &[], &[]), copy.clone()], &[copy, grid("t", &[], &[])]));
        assert_eq!(all, [("p", 0, 0), ("c", 1, 2), ("copy", 1, 2), ("copy", 0, 1), ("t", 0, 1)]);
    }

    #[test]
    fn one_after_the_other_in_tails_is_never_more_than_one() {
        let mut last = grid("last", &[], &[]);
        for _ in 0..100 {
            last = grid("again", &[], &[last]);
        }
        let all = ran(last);
        assert_eq!((all.len(), all.iter().map(|(.., n)| *n).max()), (101, Some(1)));
    }

    #[test]
    fn an_error_ends_it() {
        let mut n = 0;
        let first =
            vec![(grid("a", &[], &[]), Standing::default()), (grid("b", &[], &[]), Standing::default())];
        let ran = run_all(first, |_, _| {
            n += 1;
            Err("no")
        });
        assert_eq!((ran, n), (Err("no"), 1));
    }

    #[test]
    fn a_tail_has_room_for_what_the_limit_leaves() {
        let standing = Standing { depth: 3, outstanding: 2000 };
        assert_eq!([2048, 2000, 7].map(|limit| standing.room(limit)), [48, 0, 0]);
    }
}
