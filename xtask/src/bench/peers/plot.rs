//! docs/performance.svg: per row a bar for each program, as long as its time in native C's, on a logarithmic axis.

use std::fmt::Write as _;

use super::Line;
use super::programs::Peer;

const BARS: [(Peer, &str); 3] = [(Peer::Ours, "#2563eb"), (Peer::Pocl, "#d97706"), (Peer::Intel, "#6b7280")];

/// The axis goes from a quarter of native code's time to this many times it.
const FROM: f64 = 0.25;
const TO: f64 = 512.0;
const LEFT: f64 = 130.0;
const WIDE: f64 = 620.0;
const TOP: f64 = 46.0;
const BAR: f64 = 8.0;
const STEP: f64 = 3.0 * BAR + 8.0;

pub fn svg(lines: &[Line]) -> String {
    let bottom = TOP + STEP * lines.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"800\" height=\"{}\" fill=\"white\"/>\n",
        bottom + 30.0,
        bottom + 30.0
    );
    legend(&mut text);
    axis(&mut text, bottom);
    for (index, line) in lines.iter().enumerate() {
        row(&mut text, line, TOP + STEP * index as f64);
    }
    text.push_str("</svg>\n");
    text
}

fn x(ratio: f64) -> f64 {
    LEFT + WIDE * (ratio.clamp(FROM, TO) / FROM).ln() / (TO / FROM).ln()
}

fn legend(text: &mut String) {
    let _ = writeln!(text, "<text x=\"{LEFT}\" y=\"16\">time / time of native C (shorter is better)</text>");
    for (index, (peer, colour)) in BARS.iter().enumerate() {
        let at = 430.0 + 120.0 * index as f64;
        let _ = writeln!(
            text,
            "<rect x=\"{at}\" y=\"7\" width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"{}\" y=\"16\">{}</text>",
            at + 15.0,
            peer.name()
        );
    }
}

fn axis(text: &mut String, bottom: f64) {
    let mut tick = FROM;
    while tick <= TO {
        let at = x(tick);
        let colour = if tick == 1.0 { "black" } else { "#d1d5db" };
        let _ = writeln!(
            text,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"{colour}\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{tick}</text>",
            bottom + 16.0
        );
        tick *= 2.0;
    }
}

fn row(text: &mut String, line: &Line, top: f64) {
    let _ = writeln!(
        text,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        LEFT - 8.0,
        top + 1.5 * BAR + 8.0,
        line.row.name
    );
    let Some(native) = line.time(Peer::Native) else { return };
    for (index, (peer, colour)) in BARS.iter().enumerate() {
        let Some(time) = line.time(*peer) else { continue };
        // A bar starts at native code's line and goes to where its program is.
        let (one, end) = (x(1.0), x(time / native));
        let _ = writeln!(
            text,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{colour}\"><title>{} {}: {:.2}</title></rect>",
            one.min(end),
            top + 4.0 + BAR * index as f64,
            (one - end).abs().max(1.0),
            line.row.name,
            peer.name(),
            time / native
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reading;
    use super::super::rows::ROWS;
    use super::*;

    #[test]
    fn twice_native_time_is_one_doubling_right_of_the_line_and_half_of_it_one_left() {
        let doubling = x(2.0) - x(1.0);
        assert!((x(1.0) - x(0.5) - doubling).abs() < 1e-9);
        assert!((x(FROM) - LEFT).abs() < 1e-9 && (x(TO) - LEFT - WIDE).abs() < 1e-9);
    }

    #[test]
    fn a_program_without_a_time_has_no_bar() {
        let measured = |cpu| Reading::Measured { cpu, wall: cpu };
        let readings = vec![
            (Peer::Ours, measured(2.0)),
            (Peer::Native, measured(1.0)),
            (Peer::Pocl, Reading::Cannot("no shuffles".to_owned())),
        ];
        let text = svg(&[Line { row: &ROWS[0], readings }]);
        assert_eq!(text.matches("<title>").count(), 1, "{text}");
    }
}
