//! Connectionist temporal classification: how likely a sequence of labels is, as the sum over all ways to stretch it.

use crate::value::Value;

/// Steps, and probabilities of each; the first of them is the blank's.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'s> {
    pub steps: usize,
    pub labels: &'s [usize],
}

impl Sample<'_> {
    /// Whether there are steps for all labels, and for a blank between two that are the same.
    pub fn fits(&self) -> bool {
        let repeated = self.labels.windows(2).filter(|two| two[0] == two[1]).count();
        self.labels.len() + repeated <= self.steps
    }

    /// The label at a place of the row of labels with blanks around each.
    fn at(&self, place: usize) -> usize {
        if place.is_multiple_of(2) { 0 } else { self.labels[place / 2] }
    }

    /// Whether a place is reached from the second one before it: over a blank between two labels that differ.
    fn jumps(&self, place: usize) -> bool {
        place % 2 == 1 && place >= 3 && self.at(place) != self.at(place - 2)
    }
}

fn log_sum(a: f64, b: f64) -> f64 {
    let (most, least) = if a > b { (a, b) } else { (b, a) };
    if most == f64::NEG_INFINITY { most } else { most + (least - most).exp().ln_1p() }
}

/// The logarithms of a step's probabilities: of numbers that are them, or of what softmax makes of numbers.
fn logarithms<V: Value>(row: &[V], is_normalized: bool) -> Vec<f64> {
    if is_normalized {
        return row.iter().map(|p| p.get().ln()).collect();
    }
    let most = row.iter().fold(f64::NEG_INFINITY, |most, value| most.max(value.get()));
    let sum: f64 = row.iter().map(|value| (value.get() - most).exp()).sum();
    row.iter().map(|value| value.get() - most - sum.ln()).collect()
}

/// The negative logarithm of the labels' probability, infinite where there is no way. With `gradient`, that of the numbers in front of
/// softmax, by steps; none is written where there is no way.
pub fn loss<V: Value>(
    sample: Sample,
    alphabet: usize,
    rows: &[V],
    is_normalized: bool,
    gradient: Option<&mut [V]>,
) -> f64 {
    let (steps, places) = (sample.steps, 2 * sample.labels.len() + 1);
    if !sample.fits() {
        return f64::INFINITY;
    }
    if steps == 0 {
        return 0.0;
    }
    let logs: Vec<f64> =
        rows.chunks(alphabet).take(steps).flat_map(|row| logarithms(row, is_normalized)).collect();
    let none = f64::NEG_INFINITY;
    let mut ahead = vec![none; steps * places];
    for place in 0..places.min(2) {
        ahead[place] = logs[sample.at(place)];
    }
    for step in 1..steps {
        let (before, these) = ahead.split_at_mut(step * places);
        let before = &before[(step - 1) * places..];
        for place in 0..places {
            let mut sum = before[place];
            if place >= 1 {
                sum = log_sum(sum, before[place - 1]);
            }
            if sample.jumps(place) {
                sum = log_sum(sum, before[place - 2]);
            }
            these[place] = sum + logs[step * alphabet + sample.at(place)];
        }
    }
    let ends =
        |row: &[f64]| row[places.saturating_sub(2)..].iter().fold(none, |sum, value| log_sum(sum, *value));
    let all = ends(&ahead[(steps - 1) * places..]);
    let Some(gradient) = gradient else { return -all };
    if all == none {
        return -all;
    }
    // What follows a place, without the place's own probability.
    let mut behind = vec![none; places];
    behind[places.saturating_sub(2)..].fill(0.0);
    for step in (0..steps).rev() {
        let row = &logs[step * alphabet..][..alphabet];
        let gradient = &mut gradient[step * alphabet..][..alphabet];
        let mut ways = vec![none; alphabet];
        for place in 0..places {
            let label = sample.at(place);
            ways[label] = log_sum(ways[label], ahead[step * places + place] + behind[place]);
        }
        for ((gradient, log), way) in gradient.iter_mut().zip(row).zip(&ways) {
            *gradient = V::of(log.exp() - (way - all).exp());
        }
        let next: Vec<f64> = (0..places).map(|place| behind[place] + row[sample.at(place)]).collect();
        for place in 0..places {
            let mut sum = next[place];
            if place + 1 < places {
                sum = log_sum(sum, next[place + 1]);
            }
            if place + 2 < places && sample.jumps(place + 2) {
                sum = log_sum(sum, next[place + 2]);
            }
            behind[place] = sum;
        }
    }
    -all
}
