import paddle

paddle.set_device("gpu:1")
