//! Natural loops, how they nest, and whether the graph is reducible.

use super::dominators::{Dominators, reversed};
use crate::ir::{BlockId, Function};

/// Whether some block may be come to again.
pub fn any(function: &Function) -> bool {
    let order = function.reverse_post_order();
    let mut position = vec![usize::MAX; function.blocks.len()];
    for (at, id) in order.iter().enumerate() {
        position[id.index()] = at;
    }
    let goes_back = |id: &BlockId| {
        let edges = function.block(*id).term.edges();
        edges.iter().any(|edge| position[edge.block.index()] <= position[id.index()])
    };
    order.iter().any(goes_back)
}

#[derive(Clone, Debug)]
pub struct Loop {
    pub header: usize,
    /// Blocks of the loop, inner loops' included, header first.
    pub blocks: Vec<usize>,
    pub parent: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct Loops {
    /// Outer loops before inner ones.
    pub all: Vec<Loop>,
    /// Innermost loop of each block.
    pub of: Vec<Option<usize>>,
}

impl Loops {
    /// `None` when a cycle has more than one entry.
    pub fn of_graph(graph: &[Vec<usize>], dominators: &Dominators) -> Option<Loops> {
        let predecessors = reversed(graph);
        let mut found: Vec<(usize, Vec<usize>)> = vec![];
        for header in 0..graph.len() {
            if !dominators.is_reachable(header) {
                continue;
            }
            let latches: Vec<usize> = predecessors[header]
                .iter()
                .copied()
                .filter(|&from| dominators.is_reachable(from) && dominators.dominates(header, from))
                .collect();
            if latches.is_empty() {
                continue;
            }
            let mut inside = vec![false; graph.len()];
            inside[header] = true;
            let mut blocks = vec![header];
            let mut work = latches;
            while let Some(block) = work.pop() {
                if !dominators.is_reachable(block) || std::mem::replace(&mut inside[block], true) {
                    continue;
                }
                blocks.push(block);
                work.extend(&predecessors[block]);
            }
            found.push((header, blocks));
        }
        if !is_acyclic_without_back_edges(graph, dominators) {
            return None;
        }
        found.sort_by_key(|(header, blocks)| (std::cmp::Reverse(blocks.len()), dominators.position(*header)));
        let mut of: Vec<Option<usize>> = vec![None; graph.len()];
        let mut all: Vec<Loop> = vec![];
        for (header, blocks) in found {
            let parent = of[header];
            for &block in &blocks {
                of[block] = Some(all.len());
            }
            all.push(Loop { header, blocks, parent });
        }
        Some(Loops { all, of })
    }

    /// Whether `block` lies in loop `index` or in one inside it.
    pub fn contains(&self, index: usize, block: usize) -> bool {
        let mut at = self.of[block];
        while let Some(inner) = at {
            if inner == index {
                return true;
            }
            at = self.all[inner].parent;
        }
        false
    }

    pub fn is_header(&self, block: usize) -> bool {
        self.of[block].is_some_and(|index| self.all[index].header == block)
    }
}

/// Kahn's algorithm on the edges that are not back edges.
fn is_acyclic_without_back_edges(graph: &[Vec<usize>], dominators: &Dominators) -> bool {
    let forward = |from: usize, to: usize| !dominators.dominates(to, from);
    let reachable: Vec<usize> = (0..graph.len()).filter(|&node| dominators.is_reachable(node)).collect();
    let mut waiting = vec![0usize; graph.len()];
    for &from in &reachable {
        for &to in graph[from].iter().filter(|&&to| forward(from, to)) {
            waiting[to] += 1;
        }
    }
    let mut ready: Vec<usize> = reachable.iter().copied().filter(|&node| waiting[node] == 0).collect();
    let mut done = 0;
    while let Some(from) = ready.pop() {
        done += 1;
        for &to in graph[from].iter().filter(|&&to| forward(from, to)) {
            waiting[to] -= 1;
            if waiting[to] == 0 {
                ready.push(to);
            }
        }
    }
    done == reachable.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loops(graph: &[Vec<usize>]) -> Option<Loops> {
        Loops::of_graph(graph, &Dominators::of_graph(graph, 0))
    }

    #[test]
    fn a_loop_in_a_loop_knows_its_parent() {
        // 0 → 1 → 2 → {2, 3} ; 3 → {1, 4}
        let loops = loops(&[vec![1], vec![2], vec![2, 3], vec![1, 4], vec![]]).unwrap();
        assert_eq!(loops.all.len(), 2);
        assert_eq!((loops.all[0].header, loops.all[1].header, loops.all[1].parent), (1, 2, Some(0)));
        assert!(loops.contains(0, 2) && !loops.contains(1, 3) && loops.of[4].is_none());
    }

    #[test]
    fn a_cycle_with_two_entries_is_irreducible() {
        assert!(loops(&[vec![1, 2], vec![2], vec![1, 3], vec![]]).is_none());
    }
}
