"""Training of word vectors: word2vec and fastText (both by gensim), and GloVe."""
