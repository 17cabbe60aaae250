#!/bin/sh
# board.sh BOARD [FOLDER]: builds the program for cm3, cm4, cm55 or rv32 with its files in FOLDER, build/board/BOARD
# without it, and runs it under QEMU. BOARD `host` is this machine, with the code for a cm3. Environment: BUDGET, that
# of attnc compile; OPTIONS, further options of it; MODEL, a spec in place of ../dates/dates.attn, with WEIGHTS,
# PRECISION and MAIN, a program in place of main.c.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
board=${1:?"board.sh cm3|cm4|cm55|rv32|host [FOLDER]"}
folder=${2:-$root/build/board/$board}
model=${MODEL:-$here/../dates/dates.attn}
name=$(basename "$model" .attn)
target=${TARGET:-$board}
[ "$target" = host ] && target=cm3
bare="-std=c11 -O2 -ffreestanding -ffunction-sections -fdata-sections -Wall -Wextra -nostdlib -Wl,--gc-sections"
bare="$bare -T $here/link.ld $here/start.c"
arm="arm-none-eabi-gcc -mthumb $bare $here/cortex_m.c -Wl,--defsym=FLASH=0 -Wl,--defsym=RAM=0x20000000"
riscv="riscv64-unknown-elf-gcc -march=rv32imac -mabi=ilp32 $bare $here/rv32.c"
riscv="$riscv -Wl,--defsym=FLASH=0x80000000 -Wl,--defsym=RAM=0x80100000"
qemu="-nographic -monitor none -serial none -icount shift=0 -chardev stdio,id=out"
qemu="$qemu -semihosting-config enable=on,target=native,chardev=out -kernel $folder/$name.elf"
library=-lgcc
case $board in
cm3) cc="$arm -mcpu=cortex-m3" run="qemu-system-arm -M mps2-an385 $qemu" ;;
cm4) cc="$arm -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard" run="qemu-system-arm -M mps2-an386 $qemu" ;;
cm55) cc="$arm -mcpu=cortex-m55 -mfloat-abi=hard -DBOARD_HZ=32000000u" run="qemu-system-arm -M mps3-an547 $qemu" ;;
rv32) cc=$riscv run="qemu-system-riscv32 -M virt -bios none $qemu" ;;
host) cc="cc -std=c11 -O2 -Wall -Wextra $here/host.c" run=$folder/$name.elf library= ;;
*) echo "board.sh: there is no board $board" >&2 && exit 2 ;;
esac
mkdir -p "$folder"
"${ATTNC:-$root/build/attnc}" compile "$model" -o "$folder" --target "$target" --embed-weights \
    --weights "${WEIGHTS:-$here/../dates/dates.safetensors}" \
    --precision "${PRECISION:-weights=int8,activations=int8,cache=int8}" ${BUDGET:+--budget "$BUDGET"} ${OPTIONS:-}
# shellcheck disable=SC2086
$cc -I"$folder" -I"$here" "${MAIN:-$here/main.c}" "$folder/$name.c" $library -o "$folder/$name.elf"
exec $run
