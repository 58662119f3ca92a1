import tensorflow as tf

with tf.device("/device:GPU:1"):
    x = tf.random.normal([4, 4])
