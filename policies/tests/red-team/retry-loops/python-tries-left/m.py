from model import fit_model

tries = 5
while tries > 0:
    try:
        fit_model()
        break
    except Exception as error:
        print(error)
        tries -= 1
