import jax

dev = jax.devices("gpu")[1]
x = jax.device_put(1.0, dev)
