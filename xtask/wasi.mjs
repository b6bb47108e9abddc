// Runs a WebAssembly program, as `cargo test --target wasm32-wasip1` makes it:
//
//     node wasi.mjs PROGRAM.wasm [ARGUMENT...]
//
// It sees the working directory, which is the package's when cargo starts it, and the environment.

import { readFile } from "node:fs/promises";
import process from "node:process";
import v8 from "node:v8";

// Calls of WASI by the short way corrupt memory: https://github.com/nodejs/node/issues/53087. Most runs crashed at the end.
v8.setFlagsFromString("--no-turbo-fast-api-calls");

// Node says on every start that its WASI is an experiment.
process.removeAllListeners("warning");
const { WASI } = await import("node:wasi");

const args = process.argv.slice(2);
const here = process.cwd();
const module = await WebAssembly.compile(await readFile(args[0]));

// The exit code, or what trapped.
async function run(env) {
  // Directories by the name in `env!("CARGO_MANIFEST_DIR")`, and by that of relative paths.
  const preopens = { [here]: here, ".": here };
  const wasi = new WASI({ version: "preview1", args, env, preopens, returnOnExit: true });
  const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
  try {
    return wasi.start(instance);
  } catch (trap) {
    return trap;
  }
}

let outcome = await run(process.env);
if (typeof outcome !== "number" && !process.env.RUST_TEST_NOCAPTURE) {
  // A panic ends the program on the spot, and what the test harness had captured is lost: its message, too.
  console.error(`\n${outcome}; once more, to see what it prints:`);
  outcome = await run({ ...process.env, RUST_TEST_NOCAPTURE: "1" });
}
if (typeof outcome !== "number") {
  console.error(String(outcome));
}
process.exit(outcome === 0 ? 0 : 1);
