"""Word vectors learnt from texts: word2vec, fastText (both by gensim) and GloVe."""
