//! Every way to write a tensor copy, in every dimension: each has to do what the model does.

use super::{
    Element, Im2col, Load, TILE, Tensor, check_load_as, column, coordinates, pattern, policy, store, tile,
};

/// A small tensor, and a place for a box of it that is partly out of bounds.
fn tiled(rank: usize) -> (Tensor, [i64; 5]) {
    let mut tensor = Tensor::new(Element::U32, &[10u64, 4, 3, 3, 2][..rank]);
    tensor.map.box_dims = [8, 3, 2, 2, 2];
    (tensor, [-1, 2, 0, 2, -1])
}

/// A column that goes on in the next image, and where it starts.
fn imaged(rank: usize) -> (Tensor, [i64; 5]) {
    let mut tensor = Tensor::new(Element::U32, &[&[12u64, 4, 3, 3][..rank - 1], &[3]].concat());
    let im2col =
        Im2col { lower: [-1, 0, 0], upper: [0, 0, -1], channels_per_pixel: 8, pixels_per_column: 30 };
    tensor.map.im2col = Some(im2col);
    (tensor, [4, -1, 0, 0, 0])
}

#[test]
fn loads_of_either_space_with_and_without_a_word_for_the_mode() {
    for rank in 1..=5 {
        let (tensor, coords) = tiled(rank);
        let groups = ["cta_group::1.shared::cluster", "cta_group::2.shared::cluster"];
        for space in ["shared::cluster", "shared::cta"].into_iter().chain(groups) {
            for (mode, hint) in [("", false), (".tile", false), (".tile", true)] {
                let how = Load { space, mode, hint, ..TILE };
                check_load_as(&format!("{rank}d.{space}{mode}"), &tensor, coords, None, how);
            }
        }
    }
    for rank in 3..=5 {
        let (tensor, coords) = imaged(rank);
        for space in ["shared::cluster", "shared::cta"] {
            for hint in [false, true] {
                let how = Load { space, mode: ".im2col", hint, ..TILE };
                check_load_as(&format!("{rank}d.{space}.im2col"), &tensor, coords, Some([1, 0, 1]), how);
            }
        }
    }
}

#[test]
fn a_prefetch_changes_nothing() {
    let prefetch = |rank: usize, mode: &str, offsets: &str, hint: bool| {
        let (hint, policy) = policy(hint);
        let place = format!("[%rd2, {}]", coordinates(rank));
        format!("cp.async.bulk.prefetch.tensor.{rank}d.L2.global{mode}{hint} {place}{offsets}{policy};\n")
    };
    for rank in 1..=5 {
        let (tensor, coords) = tiled(rank);
        let forms = [("", false), (".tile", false), (".tile", true)];
        let before: String = forms.iter().map(|&(mode, hint)| prefetch(rank, mode, "", hint)).collect();
        let memory = tensor.memory().to_vec();
        check_load_as(&before, &tensor, coords, None, Load { before: &before, ..TILE });
        assert!(tensor.memory() == memory, "{before}");
    }
    for (rank, offsets) in [(3, ", {%o0}"), (4, ", {%o0, %o1}"), (5, ", {%o0, %o1, %o2}")] {
        let (tensor, coords) = imaged(rank);
        let before = prefetch(rank, ".im2col", offsets, false) + &prefetch(rank, ".im2col", offsets, true);
        let how = Load { mode: ".im2col", before: &before, ..TILE };
        check_load_as(&before, &tensor, coords, Some([0; 3]), how);
    }
}

/// What an operation makes of an element, by the manual's table for `red`.
fn reduced(op: &str, old: u32, new: u32) -> u32 {
    match op {
        "add" => old.wrapping_add(new),
        "min" => old.min(new),
        "max" => old.max(new),
        "inc" if old >= new => 0,
        "inc" => old + 1,
        "dec" if old == 0 || old > new => new,
        "dec" => old - 1,
        "and" => old & new,
        "or" => old | new,
        "xor" => old ^ new,
        "" => new,
        _ => unreachable!("{op}"),
    }
}

/// A store of 32-bit elements, or a reduction by `op`, against what it makes of each.
fn check_store(instruction: &str, op: &str, mut tensor: Tensor, coords: [i64; 5]) {
    let elements = match tensor.map.im2col {
        Some(_) => column(&tensor.map, coords, [0; 3]),
        None => tile(&tensor.map, coords),
    };
    let mut from = pattern(elements.len() / 4);
    let words: Vec<u32> =
        from.iter().flat_map(|word| [0, 32, 64, 96].map(|bit| (word >> bit) as u32)).collect();
    let mut wanted = store(&mut tensor, instruction, coords, &mut from, elements.len() as u32 * 4);
    let mut n_inside = 0;
    for (at, new) in elements.into_iter().zip(words) {
        let Some(offset) = tensor.offset(at) else { continue };
        let place = &mut wanted[offset..offset + 4];
        let old = u32::from_le_bytes(place.try_into().unwrap());
        place.copy_from_slice(&reduced(op, old, new).to_le_bytes());
        n_inside += 1;
    }
    assert!(n_inside > 0);
    assert!(tensor.memory() == wanted, "{instruction}");
}

/// Modes and hints of a store.
const STORES: [&str; 3] = [".bulk_group", ".tile.bulk_group", ".tile.bulk_group.L2::cache_hint"];

#[test]
fn stores_with_and_without_a_word_for_the_mode() {
    for rank in 1..=5 {
        for form in STORES {
            let (tensor, coords) = tiled(rank);
            let name = format!("cp.async.bulk.tensor.{rank}d.global.shared::cta{form}");
            check_store(&name, "", tensor, coords);
        }
    }
    for rank in 3..=5 {
        let (tensor, coords) = imaged(rank);
        let name = format!("cp.async.bulk.tensor.{rank}d.global.shared::cta.im2col_no_offs.bulk_group");
        check_store(&name, "", tensor, coords);
    }
}

#[test]
fn reductions_by_every_operation_in_every_dimension() {
    for rank in 1..=5 {
        for op in ["add", "min", "max", "inc", "dec", "and", "or", "xor"] {
            for form in STORES {
                let (tensor, coords) = tiled(rank);
                let name = format!("cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}{form}");
                check_store(&name, op, tensor, coords);
            }
        }
    }
    for rank in 3..=5 {
        for op in ["add", "max", "xor"] {
            let (tensor, coords) = imaged(rank);
            let form = ".im2col_no_offs.bulk_group";
            let name = format!("cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}{form}");
            check_store(&name, op, tensor, coords);
        }
    }
}
