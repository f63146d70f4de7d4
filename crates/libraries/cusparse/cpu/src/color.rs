//! Colours of rows, so that no row has the colour of another in whose column it has an entry.

use crate::Index;

/// Gives each row the first colour that none of its neighbours has, until so many rows have one; what is left gets a colour each.
/// The number of colours. The pattern is symmetric.
pub fn color<I: Index>(
    (offsets, indices, base): (&[I], &[I], usize),
    wanted: usize,
    colors: &mut [i32],
) -> usize {
    colors.fill(-1);
    let (mut count, mut taken) = (0, Vec::<usize>::new());
    for row in 0..colors.len() {
        if row >= wanted {
            colors[row] = count as i32;
            count += 1;
            continue;
        }
        for index in &indices[offsets[row].place(base)..offsets[row + 1].place(base)] {
            let other = index.place(base);
            if other != row && colors[other] >= 0 {
                // Which row has seen the colour, and one more.
                taken[colors[other] as usize] = row + 1;
            }
        }
        let free = taken.iter().position(|seen| *seen != row + 1).unwrap_or(count);
        if free == count {
            count += 1;
            taken.push(0);
        }
        colors[row] = free as i32;
    }
    count
}
