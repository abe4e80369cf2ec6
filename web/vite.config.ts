// The build is committed: fixed names, no hashes and no source maps, so that its changes stay small.
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

export default defineConfig({
  base: "/page/",
  plugins: [svelte()],
  // Which build this is: a SharedWorker of another one must not be shared with it.
  define: { __BUILD__: JSON.stringify((process.env["PAGE_BUILD"] ?? "unbuilt").slice(0, 12)) },
  build: {
    outDir: "../services/api/page",
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      input: { app: "index.html", live: "src/live/worker.ts" },
      output: {
        entryFileNames: "[name].js",
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
      },
    },
  },
  server: { proxy: { "/api": "http://127.0.0.1:8800", "/health": "http://127.0.0.1:8800" } },
});
