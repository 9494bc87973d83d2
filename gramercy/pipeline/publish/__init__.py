"""Charge, draw and seal: releases, estimates and reports."""
