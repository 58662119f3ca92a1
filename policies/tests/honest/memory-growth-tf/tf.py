import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    print(tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0]))
strategy = tf.distribute.MirroredStrategy()
