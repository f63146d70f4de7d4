//! A linear order of the blocks for masked execution: topological but for back edges, each loop contiguous, and the
//! sides of a branch contiguous where the graph allows it.

use super::loops::Loops;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    Block(usize),
    /// Behind the last block of a loop: lanes that wait at its header go round again.
    LoopEnd(usize),
}

#[derive(Clone, Debug)]
pub struct Layout {
    pub items: Vec<Item>,
    /// Position of each block among the items; `usize::MAX` when unreachable.
    pub position: Vec<usize>,
}

impl Layout {
    pub fn of(graph: &[Vec<usize>], loops: &Loops, reachable: impl Fn(usize) -> bool) -> Layout {
        let mut layout = Layout { items: vec![], position: vec![usize::MAX; graph.len()] };
        layout.level(graph, loops, None, 0, &reachable);
        for (at, item) in layout.items.iter().enumerate() {
            if let Item::Block(block) = item {
                layout.position[*block] = at;
            }
        }
        layout
    }

    /// Lays out the direct members of one loop (or of no loop), inner loops as single nodes.
    fn level(
        &mut self,
        graph: &[Vec<usize>],
        loops: &Loops,
        level: Option<usize>,
        entry: usize,
        reachable: &impl Fn(usize) -> bool,
    ) {
        // The node of this level that stands for a block: its own index, or the header of the loop around it.
        let node = |block: usize| -> Option<usize> {
            let mut at = block;
            let mut of = loops.of[block];
            while of != level {
                let inner = of?;
                at = loops.all[inner].header;
                of = loops.all[inner].parent;
            }
            Some(at)
        };
        let members: Vec<usize> =
            (0..graph.len()).filter(|&block| reachable(block) && node(block).is_some()).collect();
        let mut next: Vec<Vec<usize>> = vec![vec![]; graph.len()];
        let mut waiting = vec![0usize; graph.len()];
        for &from in &members {
            for &to in &graph[from] {
                let (Some(a), Some(b)) = (node(from), node(to)) else { continue };
                if a != b && b != entry && !next[a].contains(&b) {
                    next[a].push(b);
                    waiting[b] += 1;
                }
            }
        }
        let mut stack = vec![entry];
        while let Some(at) = stack.pop() {
            match loops.of[at] {
                Some(inner) if Some(inner) != level => {
                    self.level(graph, loops, Some(inner), at, reachable);
                    self.items.push(Item::LoopEnd(inner));
                }
                _ => self.items.push(Item::Block(at)),
            }
            for &to in next[at].iter().rev() {
                waiting[to] -= 1;
                if waiting[to] == 0 {
                    stack.push(to);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::dominators::Dominators;

    #[test]
    fn loops_and_sides_stay_together() {
        // 0 → {1, 4}; 1 → 2 → {1, 3}; 3 → 5; 4 → 5
        let graph = vec![vec![1, 4], vec![2], vec![1, 3], vec![5], vec![5], vec![]];
        let dominators = Dominators::of_graph(&graph, 0);
        let loops = Loops::of_graph(&graph, &dominators).unwrap();
        let layout = Layout::of(&graph, &loops, |_| true);
        use Item::*;
        assert_eq!(layout.items, [Block(0), Block(1), Block(2), LoopEnd(0), Block(3), Block(4), Block(5)]);
    }
}
