"""The noise of a release: denoising, simulation and spectra, from public facts."""
