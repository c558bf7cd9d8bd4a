import { factory } from './fake.mjs';
export default factory('plain', true);
