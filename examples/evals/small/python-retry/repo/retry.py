def retry(call, times):
    raise NotImplementedError
