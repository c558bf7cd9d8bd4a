import { factory } from './fake.mjs';
export default factory('mtp', true);
