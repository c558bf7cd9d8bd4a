// The page: a model panel over three views of the model that is loaded.
import { setBenchModel, startBench } from './bench.js';
import { setChatModel, startChat } from './chat.js';
import { setKernelsModel, startKernels } from './kernels.js';
import { startModelPanel } from './model_panel.js';
import { startOffline } from './offline.js';
import { startTabs } from './tabs.js';

startTabs();
startChat();
startBench();
startKernels();
startModelPanel((model) => {
  setChatModel(model);
  setBenchModel(model);
  setKernelsModel(model);
});
void startOffline();
