"""MuJoCo on Warp (mujoco-warp) as it comes from PyPI, with results compared to those of MuJoCo itself, whose C code computes in doubles."""

import os

import mujoco
import mujoco_warp as mjw
import numpy as np
import warp as wp

from beside import FAILED, compare, run

wp.config.quiet = True
wp.init()
CUDA = wp.get_device("cuda:0")
DATA = os.path.join(os.path.dirname(mjw.__file__), "test_data")
RANDOM = np.random.default_rng(9)


def model(file):
    made = mujoco.MjModel.from_xml_path(os.path.join(DATA, file))
    # What both solve for is found to the end.
    made.opt.iterations, made.opt.ls_iterations, made.opt.tolerance = 100, 50, 1e-10
    return made


def begin(made, steps=0, keyframe=None):
    """A state that has moved, on the host."""
    data = mujoco.MjData(made)
    if keyframe is not None:
        mujoco.mj_resetDataKeyframe(made, data, keyframe)
    data.qvel = RANDOM.uniform(-0.1, 0.1, made.nv)
    data.ctrl = RANDOM.uniform(-0.3, 0.3, made.nu)
    for _ in range(steps):
        mujoco.mj_step(made, data)
    mujoco.mj_forward(made, data)
    return data


def put(made, data, **how):
    """The state alone: all that follows from it the device has to find itself."""
    there = mjw.make_data(made, **how)
    for name in ("qpos", "qvel", "act", "ctrl", "qacc_warmstart"):
        into = getattr(there, name)
        if into.size:
            wp.copy(into, wp.array(np.broadcast_to(getattr(data, name), into.shape).astype(np.float32), dtype=float))
    return mjw.put_model(made), there


def forward(file, bound, *fields, steps=0, keyframe=None):
    """Everything that follows from a state."""
    made = model(file)
    data = begin(made, steps, keyframe)
    on_device = put(made, data)
    mjw.forward(*on_device)
    got = mujoco.MjData(made)
    mjw.get_data_into(got, made, on_device[1])
    for field in fields:
        compare(f"{file}, {field}", np.array(getattr(got, field)), np.array(getattr(data, field)), bound)
    return made, data, got


SMOOTH = ("xpos", "xquat", "xipos", "geom_xmat", "subtree_com", "cinert", "cvel", "qfrc_bias", "qfrc_passive", "actuator_force", "qacc_smooth")


def chains():
    """Joints of all kinds, without contacts."""
    forward("pendula.xml", 2e-4, *(it for it in SMOOTH if it != "actuator_force"), "qacc", steps=20)


def humanoid():
    """With the ground under its feet: contacts, and the solver that finds their forces."""
    made, data, got = forward("humanoid/humanoid.xml", 2e-3, *SMOOTH, "qacc", "qfrc_constraint", steps=50, keyframe=0)
    if data.ncon < 4 or got.ncon != data.ncon:
        FAILED.append(f"humanoid: {got.ncon} contacts, {data.ncon} expected")
        return

    def ordered(it):
        at = np.array(it.contact.dist), np.array(it.contact.pos)
        rows = np.column_stack([it.contact.geom[: it.ncon], at[0][: it.ncon], at[1][: it.ncon]])
        return rows[np.lexsort(np.round(rows.T[::-1], 3))]

    compare("contacts", ordered(got), ordered(data), 1e-5)


def tendons():
    """Pulled, damped, and laid around other bodies."""
    forward("tendon/damping.xml", 5e-4, "ten_length", "ten_velocity", "qfrc_passive", "qacc_smooth", steps=5)
    forward("tendon/wrap.xml", 5e-4, "ten_length", "ten_velocity", steps=5)


def equalities():
    forward("constraints.xml", 2e-3, "xpos", "qacc_smooth", "qacc", keyframe=0)


def steps_of_a_humanoid():
    """A quarter of a second, by each of its integrators, is where MuJoCo comes to."""
    for integrator in (mujoco.mjtIntegrator.mjINT_EULER, mujoco.mjtIntegrator.mjINT_IMPLICITFAST):
        made = model("humanoid/humanoid.xml")
        made.opt.integrator = integrator
        data = begin(made, 0, 0)
        on_device = put(made, data)
        start = data.qpos.copy()
        for _ in range(50):
            mjw.step(*on_device)
            mujoco.mj_step(made, data)
        if np.abs(data.qpos - start).max() < 0.02:
            FAILED.append(f"steps: nothing moved by {integrator}")
        compare(f"positions by {integrator}", on_device[1].qpos.numpy()[0].astype(float), data.qpos, 1e-3)


def many_worlds():
    """A graph of one step, replayed, for 24 worlds that begin differently."""
    made = model("humanoid/humanoid.xml")
    data = begin(made, 0, 0)
    m, d = put(made, data, nworld=24, nconmax=64, njmax=256)
    starts = np.tile(data.qpos, (24, 1))
    starts[:, 7:] += RANDOM.uniform(-0.05, 0.05, (24, made.nq - 7))
    starts[:, 2] += np.linspace(0, 0.1, 24)
    wp.copy(d.qpos, wp.array(starts.astype(np.float32)))
    # Kernels are compiled before a capture begins; then the worlds are as they were.
    mjw.step(m, d)
    for name in ("qpos", "qvel", "qacc_warmstart", "time"):
        before = starts if name == "qpos" else np.broadcast_to(np.array(getattr(data, name)), getattr(d, name).shape)
        wp.copy(getattr(d, name), wp.array(before.astype(np.float32)))
    with wp.ScopedCapture() as capture:
        mjw.step(m, d)
    for _ in range(20):
        wp.capture_launch(capture.graph)
    ends = d.qpos.numpy()
    for world in range(0, 24, 5):
        alone = mujoco.MjData(made)
        alone.qpos, alone.qvel, alone.ctrl = starts[world].astype(np.float32), data.qvel, data.ctrl
        alone.qacc_warmstart = data.qacc_warmstart
        for _ in range(20):
            mujoco.mj_step(made, alone)
        compare(f"world {world}", ends[world].astype(float), alone.qpos, 1e-3)


def rays():
    made = model("ray.xml")
    data = begin(made)
    m, d = put(made, data)
    mjw.forward(m, d)
    hits = 0
    for _ in range(12):
        point, way = np.array([*RANDOM.uniform(-1, 1, 2), 3.0]), RANDOM.uniform(-0.4, 0.4, 3) - [0, 0, 1]
        way /= np.linalg.norm(way)
        which = np.zeros((1, 1), np.int32)
        expected = mujoco.mj_ray(made, data, point, way, None, True, -1, which)
        distance, geometry, _ = mjw.ray(m, d, wp.array([[wp.vec3(*point)]], dtype=wp.vec3), wp.array([[wp.vec3(*way)]], dtype=wp.vec3))
        if geometry.numpy().ravel()[0] != which.ravel()[0]:
            FAILED.append(f"rays: hit {geometry.numpy()}, {which} expected")
        compare("a ray", distance.numpy().ravel()[0].astype(float), np.float64(expected), 1e-5)
        hits += which.ravel()[0] >= 0
    if hits < 6:
        FAILED.append(f"rays: {hits} hits prove little")


def energy_and_sensors():
    """Of a chain that swings: both energies, and what its sensors read."""
    made = model("humanoid/humanoid.xml")
    made.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = begin(made, 30, 0)
    m, d = put(made, data)
    mjw.forward(m, d)
    compare("energies", d.energy.numpy()[0].astype(float), data.energy, 1e-4)
    if made.nsensor:
        compare("sensors", d.sensordata.numpy()[0].astype(float), data.sensordata, 2e-3)


print(mujoco.__version__, CUDA.name)
run(chains, humanoid, tendons, equalities, steps_of_a_humanoid, many_worlds, rays, energy_and_sensors)
