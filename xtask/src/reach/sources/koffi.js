let whose = 'none';
try {
  const library = require('koffi').load('libcuda.so.1');
  const version = [0];
  library.func('int cuDriverGetVersion(_Out_ int *version)')(version);
  whose = version[0] > 1 ? 'ours' : 'theirs';
} catch (error) {}
console.log(whose);
