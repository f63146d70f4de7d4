//! Dominators of any graph with one root, after Cooper, Harvey and Kennedy.
//!
//! Post-dominators are the dominators of the reversed graph with a virtual exit as root.

use crate::ir::{BlockId, Function};

/// Successors of each block, one entry per edge.
pub fn successors(function: &Function) -> Vec<Vec<usize>> {
    function
        .blocks
        .iter()
        .map(|block| block.term.edges().iter().map(|edge| edge.block.index()).collect())
        .collect()
}

/// The same edges, backwards.
pub fn reversed(graph: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut reversed = vec![vec![]; graph.len()];
    for (from, successors) in graph.iter().enumerate() {
        for &to in successors {
            reversed[to].push(from);
        }
    }
    reversed
}

/// Nodes reachable from `root` in reverse post-order.
pub fn reverse_post_order(graph: &[Vec<usize>], root: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(graph.len());
    let mut seen = vec![false; graph.len()];
    let mut stack = vec![(root, 0usize)];
    seen[root] = true;
    while let Some((node, next)) = stack.pop() {
        match graph[node].get(next) {
            Some(&to) => {
                stack.push((node, next + 1));
                if !std::mem::replace(&mut seen[to], true) {
                    stack.push((to, 0));
                }
            }
            None => order.push(node),
        }
    }
    order.reverse();
    order
}

#[derive(Clone, Debug)]
pub struct Dominators {
    root: usize,
    /// Immediate dominator; `None` for the root and for unreachable nodes.
    parent: Vec<Option<usize>>,
    /// Position in reverse post-order, `usize::MAX` when unreachable.
    position: Vec<usize>,
    depth: Vec<usize>,
}

impl Dominators {
    pub fn of(function: &Function) -> Dominators {
        Dominators::of_graph(&successors(function), 0)
    }

    pub fn of_graph(graph: &[Vec<usize>], root: usize) -> Dominators {
        let order = reverse_post_order(graph, root);
        let predecessors = reversed(graph);
        let mut position = vec![usize::MAX; graph.len()];
        for (at, &node) in order.iter().enumerate() {
            position[node] = at;
        }
        let mut parent: Vec<Option<usize>> = vec![None; graph.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for &node in &order[1..] {
                let mut new: Option<usize> = None;
                for &from in &predecessors[node] {
                    if position[from] == usize::MAX || (from != root && parent[from].is_none()) {
                        continue;
                    }
                    new = Some(match new {
                        None => from,
                        Some(other) => meet(&parent, &position, other, from),
                    });
                }
                if new != parent[node] {
                    parent[node] = new;
                    changed = true;
                }
            }
        }
        let mut depth = vec![0; graph.len()];
        for &node in &order[1..] {
            depth[node] = parent[node].map_or(0, |parent| depth[parent] + 1);
        }
        Dominators { root, parent, position, depth }
    }

    pub fn immediate(&self, node: usize) -> Option<usize> {
        self.parent[node]
    }

    pub fn is_reachable(&self, node: usize) -> bool {
        self.position[node] != usize::MAX
    }

    /// Position of a node in reverse post-order.
    pub fn position(&self, node: usize) -> usize {
        self.position[node]
    }

    /// Whether every path from the root to `b` passes `a`; a node dominates itself.
    pub fn dominates(&self, a: usize, b: usize) -> bool {
        if !self.is_reachable(a) || !self.is_reachable(b) {
            return false;
        }
        let mut at = b;
        while self.depth[at] > self.depth[a] {
            match self.parent[at] {
                Some(parent) => at = parent,
                None => return at == a,
            }
        }
        at == a
    }

    /// The dominance frontier of every node.
    pub fn frontiers(&self, graph: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let predecessors = reversed(graph);
        let mut frontiers = vec![vec![]; graph.len()];
        for (node, sources) in predecessors.iter().enumerate() {
            if !self.is_reachable(node) || (sources.len() < 2 && node != self.root) {
                continue;
            }
            for &from in sources {
                let mut at = Some(from).filter(|&from| self.is_reachable(from));
                while let Some(runner) = at {
                    if Some(runner) == self.parent[node] {
                        break;
                    }
                    if !frontiers[runner].contains(&node) {
                        frontiers[runner].push(node);
                    }
                    at = self.parent[runner];
                }
            }
        }
        frontiers
    }
}

fn meet(parent: &[Option<usize>], position: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while position[a] > position[b] {
            a = parent[a].unwrap_or(b);
        }
        while position[b] > position[a] {
            b = parent[b].unwrap_or(a);
        }
    }
    a
}

/// Post-dominators of a graph: node `graph.len()` is the virtual exit behind every node without successors.
/// Nodes that reach no exit (endless loops) are unreachable in the result.
pub fn post_dominators(graph: &[Vec<usize>]) -> Dominators {
    let exit = graph.len();
    let mut reversed = reversed(graph);
    reversed.push((0..graph.len()).filter(|&node| graph[node].is_empty()).collect());
    Dominators::of_graph(&reversed, exit)
}

/// A block by its index.
pub fn block(index: usize) -> BlockId {
    BlockId(index as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 → 1 → {2, 3} → 4 → {1, 5}
    fn looped_diamond() -> Vec<Vec<usize>> {
        vec![vec![1], vec![2, 3], vec![4], vec![4], vec![1, 5], vec![]]
    }

    #[test]
    fn immediate_dominators_of_a_diamond_in_a_loop() {
        let dominators = Dominators::of_graph(&looped_diamond(), 0);
        let immediate: Vec<_> = (0..6).map(|node| dominators.immediate(node)).collect();
        assert_eq!(immediate, [None, Some(0), Some(1), Some(1), Some(1), Some(4)]);
        assert!(dominators.dominates(1, 5) && dominators.dominates(4, 4) && !dominators.dominates(2, 4));
    }

    #[test]
    fn a_diamonds_sides_meet_behind_it() {
        let post = post_dominators(&looped_diamond());
        assert_eq!(post.immediate(1), Some(4));
        assert_eq!(post.immediate(4), Some(5));
        assert_eq!(post.immediate(5), Some(6));
    }

    #[test]
    fn frontiers_are_where_dominance_ends() {
        let graph = looped_diamond();
        let frontiers = Dominators::of_graph(&graph, 0).frontiers(&graph);
        assert_eq!(frontiers[2], [4]);
        assert_eq!(frontiers[4], [1]);
        assert_eq!(frontiers[0], Vec::<usize>::new());
    }
}
