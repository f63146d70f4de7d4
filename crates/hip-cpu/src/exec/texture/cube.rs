//! Cubemaps: from a direction to a face and back, by the CUDA C++ Programming Guide's table.
//!
//! Faces in order: +x, -x, +y, -y, +z, -z.

/// Which axis is the major one, and how the two others become `s` and `t`.
struct Face {
    major: usize,
    s: (usize, f64),
    t: (usize, f64),
}

const FACES: [Face; 6] = [
    Face { major: 0, s: (2, -1.0), t: (1, -1.0) },
    Face { major: 0, s: (2, 1.0), t: (1, -1.0) },
    Face { major: 1, s: (0, 1.0), t: (2, 1.0) },
    Face { major: 1, s: (0, 1.0), t: (2, -1.0) },
    Face { major: 2, s: (0, 1.0), t: (1, -1.0) },
    Face { major: 2, s: (0, -1.0), t: (1, -1.0) },
];

/// The face that a direction meets. Where two magnitudes are equal the later axis wins.
fn face_of(direction: [f64; 3]) -> usize {
    let [x, y, z] = direction.map(f64::abs);
    let major = if z >= x && z >= y {
        2
    } else if y >= x {
        1
    } else {
        0
    };
    2 * major + usize::from(direction[major] < 0.0)
}

/// The face and its coordinates in [0, 1].
pub fn project(direction: [f64; 3]) -> (u32, [f64; 2]) {
    let number = face_of(direction);
    let face = &FACES[number];
    let major = direction[face.major].abs();
    let on_face = |(axis, sign): (usize, f64)| (sign * direction[axis] / major + 1.0) / 2.0;
    (number as u32, [on_face(face.s), on_face(face.t)])
}

/// How the face's coordinates move when the direction moves by `step`.
pub fn derivative(direction: [f64; 3], step: [f64; 3]) -> [f64; 3] {
    let face = &FACES[face_of(direction)];
    let (major, by) = (direction[face.major].abs(), step[face.major] * direction[face.major].signum());
    let moved = |(axis, sign): (usize, f64)| {
        sign * (step[axis] * major - direction[axis] * by) / (major * major) / 2.0
    };
    [moved(face.s), moved(face.t), 0.0]
}

/// The element at `x`, `y` of a face of `side` elements; outside of it, the one on the face that joins there.
pub fn neighbour(face: i64, x: i64, y: i64, side: i64) -> (i64, i64, i64) {
    let inside = |at: i64| (0..side).contains(&at);
    if inside(x) && inside(y) {
        return (face, x, y);
    }
    // At a corner three faces meet and there is no fourth element: the nearer edge's stands for it.
    let y = if inside(x) { y } else { y.clamp(0, side - 1) };
    let from = &FACES[(face.clamp(0, 5)) as usize];
    let mut direction = [0.0; 3];
    direction[from.major] = if face % 2 == 0 { 1.0 } else { -1.0 };
    let on_plane = |at: i64| (2 * at + 1) as f64 / side as f64 - 1.0;
    direction[from.s.0] = from.s.1 * on_plane(x);
    direction[from.t.0] = from.t.1 * on_plane(y);
    let (to, [s, t]) = project(direction);
    let element = |at: f64| ((at * side as f64).floor() as i64).clamp(0, side - 1);
    (to.into(), element(s), element(t))
}
