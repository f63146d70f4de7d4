"""OpenMM's CUDA platform as it comes from PyPI: molecular dynamics whose kernels NVRTC compiles while it runs, with particle-mesh Ewald
on our cuFFT. Forces, energies and steps are compared with those of OpenMM's own Reference platform, which computes in double precision."""

import os
import tempfile

import numpy as np
import openmm as mm
from beside import FAILED, compare, run
from openmm import app, unit

DATA = os.path.join(os.path.dirname(app.__file__), "data")
REFERENCE, CUDA = (mm.Platform.getPlatformByName(name) for name in ("Reference", "CUDA"))
# Bounds of OpenMM's own tests of forces, of the largest force: what the platform sums in single precision, and in double.
SINGLE, DOUBLE = 1e-4, 1e-5
NANOMETERS = unit.nanometer
FEMTOSECONDS = unit.femtosecond


def system(pdb, fields, **options):
    molecules = app.PDBFile(os.path.join(DATA, pdb))
    made = app.ForceField(*fields).createSystem(molecules.topology, **options)
    return made, molecules.positions


def peptide(method, **options):
    """Alanine dipeptide in water, 2,269 atoms."""
    fields = ("amber99sb.xml", "tip3p.xml")
    return system("test.pdb", fields, nonbondedMethod=method, nonbondedCutoff=0.9 * NANOMETERS, **options)


def context(made, positions, platform, precision="single", integrator=None, **properties):
    integrator = integrator or mm.VerletIntegrator(0.5 * FEMTOSECONDS)
    if platform is CUDA:
        # Where it lies that is compiled is the machine's business, and not kept.
        properties = {"Precision": precision, "TempDirectory": tempfile.gettempdir(), **properties}
    here = mm.Context(made, integrator, platform, properties)
    here.setPositions(positions)
    return here


def forces(here):
    state = here.getState(forces=True, energy=True)
    energy = state.getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole)
    return state.getForces(asNumpy=True)._value, energy


def as_on_reference(name, made, positions, bounds=(SINGLE, DOUBLE)):
    wanted, energy = forces(context(made, positions, REFERENCE))
    for precision, bound in zip(("single", "double"), bounds):
        found, its_energy = forces(context(made, positions, CUDA, precision))
        compare(f"{name}, forces in {precision}", found, wanted, bound)
        compare(f"{name}, energy in {precision}", np.float64(its_energy), np.float64(energy), bound)


def on_mesh(method):
    """With a mesh that both platforms take as it is: left to themselves, each has one of its own."""
    made, positions = peptide(method, constraints=app.HBonds)
    (charges,) = (force for force in made.getForces() if isinstance(force, mm.NonbondedForce))
    charges.setPMEParameters(3.4, 30, 32, 28)
    charges.setLJPMEParameters(3.0, 24, 27, 25)
    return made, positions


def particle_mesh_ewald():
    as_on_reference("PME", *on_mesh(app.PME))


def dispersion_by_mesh():
    as_on_reference("LJPME", *on_mesh(app.LJPME))


def cutoffs():
    as_on_reference("reaction field", *peptide(app.CutoffPeriodic))


def implicit_solvent():
    """Born radii: sums over all pairs, and forces through them."""
    molecules = app.PDBFile(os.path.join(DATA, "test.pdb"))
    alone = app.Modeller(molecules.topology, molecules.positions)
    alone.delete([residue for residue in alone.topology.residues() if residue.name in ("HOH", "Cl", "Na")])
    made = app.ForceField("amber14/protein.ff14SB.xml", "implicit/obc2.xml").createSystem(alone.topology)
    as_on_reference("GBSA", made, alone.positions)


def forces_of_a_formula():
    """What a user writes becomes a kernel: pairs, bonds and a table of numbers."""
    made, positions = mm.System(), np.random.default_rng(5).uniform(0, 2.4, (400, 3))
    made.setDefaultPeriodicBoxVectors(*(2.4 * np.eye(3)))
    pairs = mm.CustomNonbondedForce("q1*q2*exp(-r/0.4)/(r+0.1) + step(0.5-r)*table(r)*(s1+s2)^2")
    pairs.addTabulatedFunction("table", mm.Continuous1DFunction(np.cos(np.linspace(0, 3, 40)), 0.0, 1.0))
    pairs.addPerParticleParameter("q")
    pairs.addPerParticleParameter("s")
    pairs.setNonbondedMethod(pairs.CutoffPeriodic)
    pairs.setCutoffDistance(1.0)
    bonds = mm.CustomBondForce("k*(1-exp(-2*(r-0.3)))^2")
    bonds.addPerBondParameter("k")
    for i in range(400):
        made.addParticle(10.0 + i % 7)
        pairs.addParticle([(-1) ** i * 3.0, 0.1 * (i % 5)])
        if i:
            bonds.addBond(i - 1, i, [0.5 + i % 3])
    made.addForce(pairs)
    made.addForce(bonds)
    as_on_reference("formulas", made, positions)


def polarizable_water():
    """AMOEBA: multipoles on a mesh, with dipoles that are solved for."""
    made, positions = system(
        "spce.pdb", ("amoeba2018.xml",), nonbondedMethod=app.PME, nonbondedCutoff=0.7 * NANOMETERS, polarization="mutual",
        mutualInducedTargetEpsilon=1e-6,
    )
    as_on_reference("AMOEBA", made, positions, (1e-3, 1e-4))


def steps():
    """Twenty steps with constraints are where Reference takes them."""
    made, positions = peptide(app.PME, constraints=app.HBonds)
    ends = []
    for platform in (REFERENCE, CUDA):
        here = context(made, positions, platform, "double", mm.VerletIntegrator(1 * FEMTOSECONDS))
        here.setVelocitiesToTemperature(300 * unit.kelvin, 11)
        # The same on both: what the one draws, and the constraints hold.
        if platform is CUDA:
            here.setVelocities(velocities)
        velocities = here.getState(velocities=True).getVelocities(asNumpy=True)
        here.getIntegrator().step(20)
        ends.append(here.getState(positions=True).getPositions(asNumpy=True)._value)
    moved = np.abs(ends[0] - np.array(positions._value)).max()
    if moved < 0.005:
        FAILED.append(f"steps: nothing moved, {moved}")
    compare("steps", ends[1], ends[0], 1e-5)


def energy_stays():
    """Without a thermostat the sum of energies stays: 200 steps of half a femtosecond in mixed precision."""
    made, positions = peptide(app.PME, rigidWater=False, ewaldErrorTolerance=1e-5)
    here = context(made, positions, CUDA, "mixed")
    mm.LocalEnergyMinimizer.minimize(here, 100)
    here.setVelocitiesToTemperature(300 * unit.kelvin, 3)

    def total():
        state = here.getState(energy=True)
        return state.getPotentialEnergy()._value + state.getKineticEnergy()._value, state.getKineticEnergy()._value

    before, kinetic = total()
    here.getIntegrator().step(200)
    drift = abs(total()[0] - before)
    if not drift < 0.01 * kinetic:
        FAILED.append(f"energy_stays: it went from {before} by {drift}, of which {kinetic} was motion")


def same_again():
    """Forces asked to be deterministic have the same bits twice; a state that was kept goes on alike."""
    made, positions = peptide(app.PME, constraints=app.HBonds)
    found = [forces(context(made, positions, CUDA, "mixed", DeterministicForces="true"))[0] for _ in range(2)]
    if found[0].tobytes() != found[1].tobytes():
        FAILED.append("same_again: other bits the second time")
    here = context(made, positions, CUDA, "mixed", mm.LangevinMiddleIntegrator(300, 1, 0.002), DeterministicForces="true")
    here.setVelocitiesToTemperature(300 * unit.kelvin, 3)
    kept, ends = here.createCheckpoint(), []
    for _ in range(2):
        here.loadCheckpoint(kept)
        here.getIntegrator().step(10)
        ends.append(here.getState(positions=True).getPositions(asNumpy=True)._value.tobytes())
    if ends[0] != ends[1]:
        FAILED.append("same_again: a checkpoint goes on in another way")


print(CUDA.getName(), mm.Platform.getOpenMMVersion())
run(
    particle_mesh_ewald,
    dispersion_by_mesh,
    cutoffs,
    implicit_solvent,
    forces_of_a_formula,
    polarizable_water,
    steps,
    energy_stays,
    same_again,
)
