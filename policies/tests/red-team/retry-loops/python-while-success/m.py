from model import train_all

done = False
while not done:
    try:
        train_all()
        done = True
    except Exception as error:
        print(error)
